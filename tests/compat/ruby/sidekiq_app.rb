# The jobs of with_sidekiq.rb, which Sidekiq's own process loads.
require "sidekiq"

address = { url: ENV.fetch("COMPAT_URL") }
Sidekiq.configure_client { |config| config.redis = address }
Sidekiq.configure_server do |config|
  config.redis = address
  # How often the poller looks for jobs that are due, in seconds.
  config.average_scheduled_poll_interval = 1
end

class Add
  include Sidekiq::Worker

  def perform(key, x, y)
    Sidekiq.redis { |db| db.rpush(key, x + y) }
  end
end

class FailsOnce
  include Sidekiq::Worker
  sidekiq_options retry: 2
  sidekiq_retry_in { 1 }

  def perform(key)
    tries = Sidekiq.redis { |db| db.incr("#{key}:tries") }
    raise "again" if tries == 1
    Sidekiq.redis { |db| db.rpush(key, tries) }
  end
end
