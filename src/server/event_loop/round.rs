//! A round of the event loop: whose turn it is, and for how long.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::{EventLoop, SEND_THRESHOLD};
use crate::server::client::CloseState;
use crate::server::connection::{Turn, TurnOutcome};

/// Connections with short turns count as active for this many milliseconds.
const ACTIVE_MS: u64 = 100;
/// A client is settled when it has been connected for so many milliseconds.
const SETTLED_AFTER_MS: u64 = 1000;
/// If more connections have a turn in a round, each reads only a little: any of them may send much.
const CROWD: usize = 4;
/// A round accepts connections and begins turns of those in line until this time has passed.
const LINE_TIME: Duration = Duration::from_micros(100);
/// A shorter `LINE_TIME` for rounds in which connections with short turns are active.
const SHARED_LINE_TIME: Duration = Duration::from_micros(20);

impl EventLoop {
    /// Gives each ready connection a turn, sends the replies, then serves those in line for a moment.
    pub(super) fn run_round(&mut self) {
        let now_ms = self.server.now_ms();
        let durable = self.server.settings.durable();
        self.run_short_turns(now_ms);
        if self.others_wait() {
            // Replies that must be durable wait for the flush at the end of the round anyway.
            if !durable && !self.pending_replies.is_empty() {
                self.finish_turns(false);
            }
            self.serve_line(now_ms);
        }
        self.finish_turns(durable);
        self.check_memory_growth();
        self.free_abandoned();
        self.check_some_idle();
    }

    /// Whether there is something to do for others than connections with short turns.
    pub(super) fn others_wait(&self) -> bool {
        !self.line.is_empty() || self.accept_wait().is_some_and(|wait| wait.is_zero())
    }

    fn run_short_turns(&mut self, now_ms: u64) {
        let mut current = std::mem::take(&mut self.current);
        std::mem::swap(&mut current, &mut self.ready);
        if !current.is_empty() {
            self.last_short_turn_ms = now_ms;
        }
        self.is_crowded = current.len() > CROWD;
        for slot in current.drain(..) {
            self.note_settled(slot, now_ms);
            self.run_turn_in_round(slot, now_ms);
        }
        (self.current, self.is_crowded) = (current, false);
    }

    /// Whether connections with short turns are active.
    fn is_shared(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.last_short_turn_ms) < ACTIVE_MS
    }

    /// Notes that a client was active that has been there for a while. Once in a millisecond is enough.
    fn note_settled(&mut self, slot: usize, now_ms: u64) {
        if self.server.settled_ms.load(Relaxed) == now_ms {
            return;
        }
        let since = self.connection_at(slot).map(|connection| connection.client.info.since_ms);
        if since.is_some_and(|since| now_ms.saturating_sub(since) >= SETTLED_AFTER_MS) {
            self.server.settled_ms.store(now_ms, Relaxed);
        }
    }

    /// Whether clients that have been there for a while are active, on whatever event loop.
    pub(super) fn has_settled_clients(&self) -> bool {
        let settled_ms = self.server.settled_ms.load(Relaxed);
        settled_ms > 0 && self.server.now_ms().saturating_sub(settled_ms) < ACTIVE_MS
    }

    /// Accepts connections and gives turns to those in line, at least one each.
    fn serve_line(&mut self, now_ms: u64) {
        let time = if self.is_shared(now_ms) { SHARED_LINE_TIME } else { LINE_TIME };
        let begin = Instant::now();
        self.accept_waiting(begin + time / 2);
        // Those that want another turn line up again; they get it in the next round.
        for _ in 0..self.line.len() {
            let Some(slot) = self.line.pop_front() else { break };
            self.run_turn_in_round(slot, now_ms);
            self.close_if_over(slot, now_ms);
            if begin.elapsed() >= time {
                break;
            }
        }
    }

    /// Runs the batched commands and sends the replies.
    fn finish_turns(&mut self, durable: bool) {
        self.run_batch();
        self.input.clear();
        self.send_replies(durable);
    }

    /// Closes a connection that has had its turn and ends, so that the close is a part of the turn.
    fn close_if_over(&mut self, slot: usize, now_ms: u64) {
        let is_last = self.pending_replies.last() == Some(&slot);
        let is_ending = self.connection_at(slot).is_some_and(|it| it.is_ending());
        // Replies that must be durable wait for the flush.
        if is_last && is_ending && !self.server.settings.durable() {
            self.pending_replies.pop();
            self.send_replies_of(slot, now_ms, true);
        }
    }

    /// Runs the turn of a connection, and sends replies if there are many.
    fn run_turn_in_round(&mut self, slot: usize, now_ms: u64) {
        if !self.input.has_room() {
            self.run_batch();
            self.input.clear();
        }
        self.run_turn(slot, now_ms);
        let enough = self.batch.is_empty() && self.pending_replies.len() >= SEND_THRESHOLD;
        if enough && !self.server.settings.durable() {
            self.send_replies(false);
        }
    }

    fn run_turn(&mut self, slot: usize, now_ms: u64) {
        let server = Arc::clone(&self.server);
        let Some(counters) = server.counters.get(self.index) else { return };
        let (is_shared, is_crowded) = (self.is_shared(now_ms), self.is_crowded);
        let mut resumes = false;
        loop {
            let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_deref_mut)
            else {
                return;
            };
            connection.is_ready = false;
            let (input, batch) = (&mut self.input, &mut self.batch);
            let mut turn = Turn {
                server: &server,
                counters,
                input,
                batch,
                slot,
                is_shared,
                is_crowded,
                now_ms,
            };
            let run = || match resumes {
                false => connection.turn(&mut turn),
                true => connection.resume(&mut turn),
            };
            match catch_unwind(AssertUnwindSafe(run)) {
                Ok(TurnOutcome::Done) => break,
                Ok(TurnOutcome::NeedsBatch) => {
                    resumes = true;
                    self.run_batch();
                }
                Err(_) => {
                    connection.client.close_state = CloseState::Now;
                    self.degrade_store();
                    break;
                }
            }
        }
        self.finish_turn(slot);
    }
}
