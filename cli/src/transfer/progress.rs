//! How long work shows how far it is and is told to stop: a bar on a terminal, lines otherwise,
//! both on standard error.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Time between two lines when there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(2);

/// How long an interruption may go unnoticed while something else is waited for.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// The mark of this process, once it catches signals: they belong to the process, and so does it.
static CAUGHT: OnceLock<Interrupt> = OnceLock::new();

/// Whether the user asked the program to stop (Ctrl-C, or a termination signal).
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    mark: Arc<AtomicBool>,
    /// Whether the next signal ends the program.
    last_warning: Arc<AtomicBool>,
}

impl Interrupt {
    /// From now on these signals set the mark instead of ending the program; a second one ends it.
    pub(crate) fn catch() -> Self {
        CAUGHT.get_or_init(Self::register).clone()
    }

    /// Whether the program was asked to stop: then its exit status says so.
    pub(crate) fn stopped_the_program() -> bool {
        CAUGHT.get().is_some_and(Self::raised)
    }

    fn register() -> Self {
        use signal_hook::flag::{register, register_conditional_shutdown};
        let interrupt = Self::default();
        let (mark, last_warning) = (&interrupt.mark, &interrupt.last_warning);
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // A signal does these in this order, as far as they are there yet: one that comes in
            // between is not lost. Without them the program ends at once: less polite, not wrong.
            let _ = register(signal, Arc::clone(mark));
            let _ = register_conditional_shutdown(signal, 130, Arc::clone(last_warning));
            let _ = register(signal, Arc::clone(last_warning));
        }
        interrupt
    }

    pub(crate) fn raised(&self) -> bool {
        self.mark.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(crate) fn raise(&self) {
        self.mark.store(true, Ordering::Relaxed);
    }

    pub(crate) fn clear(&self) {
        self.mark.store(false, Ordering::Relaxed);
        self.last_warning.store(false, Ordering::Relaxed);
    }

    /// Does something that cannot be told to stop, and that nobody misses when the program ends in
    /// the middle of it: when interrupted, this returns without it.
    pub(crate) fn unless_raised<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        mut meanwhile: impl FnMut(),
    ) -> Option<T> {
        let (done, result) = sync_channel(1);
        // Nobody takes the result of what was given up.
        std::thread::spawn(move || _ = done.send(work()));
        loop {
            match result.recv_timeout(LOOK) {
                Ok(result) => return Some(result),
                Err(RecvTimeoutError::Timeout) if !self.raised() => meanwhile(),
                Err(_) => return None,
            }
        }
    }
}

/// See the module's documentation.
pub(crate) struct Progress {
    what: &'static str,
    bar: Option<ProgressBar>,
    interrupt: Interrupt,
    done: u64,
    total: Option<u64>,
    quiet: bool,
    told: Instant,
}

impl Progress {
    /// Counts `what`: "keys", "bytes".
    pub(crate) fn new(what: &'static str, interrupt: Interrupt, quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(ProgressBar::no_length);
        if let Some(bar) = &bar {
            bar.set_style(style(what, false));
        }
        Self { what, bar, interrupt, done: 0, total: None, quiet, told: Instant::now() }
    }

    /// How much there is in all, if that is known.
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
            None if self.quiet || self.told.elapsed() < LINE_INTERVAL => {}
            None => {
                self.told = Instant::now();
                let of = self.total.map_or_else(String::new, |total| format!(" of {total}"));
                // Progress that nobody can see is no reason to stop.
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
