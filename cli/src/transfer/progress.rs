//! Progress and interruption of long operations. Progress goes to standard error: a bar on a
//! terminal, lines otherwise.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// The time between two lines when there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(2);

/// The interval at which a waiting operation checks for an interruption.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The interruption flag of this process, once it catches signals.
static CAUGHT: OnceLock<Interrupt> = OnceLock::new();

/// Whether the user has asked the program to stop, by Ctrl-C or a termination signal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    flag: Arc<AtomicBool>,
    /// Whether the next signal ends the program.
    exit_on_next: Arc<AtomicBool>,
}

impl Interrupt {
    /// Makes SIGINT and SIGTERM set the flag; a second signal ends the program.
    pub(crate) fn catch() -> Self {
        CAUGHT.get_or_init(Self::register).clone()
    }

    /// Whether a signal has stopped the program. The exit status then says so.
    pub(crate) fn stopped_the_program() -> bool {
        CAUGHT.get().is_some_and(Self::raised)
    }

    fn register() -> Self {
        use signal_hook::flag::{register, register_conditional_shutdown};
        let interrupt = Self::default();
        let (flag, exit_on_next) = (&interrupt.flag, &interrupt.exit_on_next);
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // A signal runs these actions in this order, as far as they are registered, so none is
            // lost in between. If a registration fails, the signal ends the program at once.
            let _ = register(signal, Arc::clone(flag));
            let _ = register_conditional_shutdown(signal, 130, Arc::clone(exit_on_next));
            let _ = register(signal, Arc::clone(exit_on_next));
        }
        interrupt
    }

    pub(crate) fn raised(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    pub(crate) fn clear(&self) {
        self.flag.store(false, Ordering::Relaxed);
        self.exit_on_next.store(false, Ordering::Relaxed);
    }

    /// Runs `work`, which cannot be interrupted, in a thread, and calls `meanwhile` from time to
    /// time. After an interruption it returns `None` and abandons the thread, so the program must
    /// be able to exit in the middle of `work`.
    pub(crate) fn run_interruptible<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        mut meanwhile: impl FnMut(),
    ) -> Option<T> {
        let (done, result) = sync_channel(1);
        // Nobody receives the result of abandoned work.
        std::thread::spawn(move || _ = done.send(work()));
        loop {
            match result.recv_timeout(POLL_INTERVAL) {
                Ok(result) => return Some(result),
                Err(RecvTimeoutError::Timeout) if !self.raised() => meanwhile(),
                Err(_) => return None,
            }
        }
    }
}

/// Shows the progress of an operation and knows whether it was interrupted.
pub(crate) struct Progress {
    what: &'static str,
    bar: Option<ProgressBar>,
    interrupt: Interrupt,
    done: u64,
    total: Option<u64>,
    quiet: bool,
    last_line: Instant,
}

impl Progress {
    /// Counts `what`: "keys", "bytes".
    pub(crate) fn new(what: &'static str, interrupt: Interrupt, quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(ProgressBar::no_length);
        if let Some(bar) = &bar {
            bar.set_style(style(what, false));
        }
        Self { what, bar, interrupt, done: 0, total: None, quiet, last_line: Instant::now() }
    }

    /// Sets the total, if it is known.
    pub(crate) fn expect(&mut self, total: Option<u64>) {
        self.total = total;
        if let (Some(bar), Some(total)) = (&self.bar, total) {
            bar.set_length(total);
            bar.set_style(style(self.what, true));
        }
    }

    pub(crate) fn advance(&mut self, by: u64) {
        self.set(self.done.saturating_add(by));
    }

    pub(crate) fn set(&mut self, done: u64) {
        self.done = done;
        match &self.bar {
            Some(bar) => bar.set_position(done),
            None if self.quiet || self.last_line.elapsed() < LINE_INTERVAL => {}
            None => {
                self.last_line = Instant::now();
                let of = self.total.map_or_else(String::new, |total| format!(" of {total}"));
                // A failure to show progress does not stop the operation.
                let _ = writeln!(std::io::stderr(), "{done}{of} {}", self.what);
            }
        }
    }

    pub(crate) fn interrupted(&self) -> bool {
        self.interrupt.raised()
    }

    pub(crate) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn style(what: &str, bounded: bool) -> ProgressStyle {
    let template = match (what, bounded) {
        ("bytes", true) => "{bar:40} {bytes}/{total_bytes} {bytes_per_sec} eta {eta}",
        ("bytes", false) => "{spinner} {bytes} {bytes_per_sec} {elapsed}",
        (_, true) => "{bar:40} {human_pos}/{human_len} {per_sec} eta {eta}",
        (_, false) => "{spinner} {human_pos} {per_sec} {elapsed}",
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
