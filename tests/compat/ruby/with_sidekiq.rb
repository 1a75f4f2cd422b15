# Sidekiq of Debian: jobs, scheduled jobs, retries, in a process of its own.
#
#     ruby with_sidekiq.rb SCENARIO redis://127.0.0.1:PORT/0
require "tempfile"

SCENARIO, ENV["COMPAT_URL"] = ARGV
require_relative "sidekiq_app"
require "sidekiq/api"

def equal(found, expected)
  raise "#{found.inspect}, not #{expected.inspect}" unless found == expected
end

def monotonic = Process.clock_gettime(Process::CLOCK_MONOTONIC)

# Waits for what a job pushed to a list.
def result(key)
  found = Sidekiq.redis { |db| db.blpop(key, timeout: 20) }
  raise "no job pushed to #{key}" unless found
  Integer(found[1])
end

# Runs Sidekiq beside a block. Shows what it said if the block fails.
def with_worker
  log = Tempfile.new("sidekiq")
  app = File.join(__dir__, "sidekiq_app.rb")
  worker = Process.spawn("sidekiq", "-r", app, "-c", "2", "-t", "1", out: log, err: log)
  yield
rescue Exception
  puts "-- worker", File.read(log.path), "-- end of worker"
  raise
ensure
  Process.kill("TERM", worker)
  Process.wait(worker)
end

def job
  with_worker do
    5.times { |n| Add.perform_async("sums", n, n) }
    equal(5.times.map { result("sums") }.sort, [0, 2, 4, 6, 8])
    equal(Sidekiq::Queue.new.size, 0)
  end
end

def scheduled
  with_worker do
    begun = monotonic
    Add.perform_in(2, "sums", 1, 2)
    equal(Sidekiq::ScheduledSet.new.size, 1)
    equal(result("sums"), 3)
    raise "it ran too early" if monotonic - begun < 1.9
    equal(Sidekiq::ScheduledSet.new.size, 0)
  end
end

def retried
  with_worker do
    FailsOnce.perform_async("tries")
    equal(result("tries"), 2)
    equal(Sidekiq::RetrySet.new.size, 0)
  end
end

begin
  send(SCENARIO)
rescue Exception => error
  warn error.full_message(highlight: false)
  puts "FAILED #{error.class}: #{error.message.lines.first}"
  exit 1
end
