//! A child process: all wanted rows on one store, once.
//!
//! First everything is written, which is what the rows of new entries time; then the store is
//! brought to rest, read, changed, popped from, and its large hashes are deleted.

use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::call::{Answer, Call, Job, Store, dispatch};
use super::peers::Kind;
use super::placement::Placement;
use super::plan::Plan;
use super::rows::Row;
use super::work::Data;
use crate::Result;
use crate::event::{Event, emit};
use crate::scratch;
use crate::workload::Timed;

/// The clock is read after this many commands: a multiple of the pipeline depth.
const STRIDE: u64 = 64;
/// Share of a row's commands that run untimed before it, so that no row pays for a cold cache.
const WARM_UP_DIVISOR: u64 = 10;

/// What the parent hands to a child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) peer: Kind,
    /// Cores of a peer that is a server.
    pub(crate) placement: Option<Placement>,
    pub(crate) plan: Plan,
    pub(crate) dir: PathBuf,
}

pub(crate) fn command(task: &str) -> Result<()> {
    run(&serde_json::from_str(task)?, &mut |event| emit(event))
}

/// Runs a task in this process, showing each measurement to `emit`.
pub(crate) fn run(task: &Task, emit: &mut dyn FnMut(&Event<Row>) -> Result<()>) -> Result<()> {
    dispatch(task.peer, Unopened { task, emit })
}

struct Unopened<'a> {
    task: &'a Task,
    emit: &'a mut dyn FnMut(&Event<Row>) -> Result<()>,
}

impl Job for Unopened<'_> {
    fn run<S: Store>(self) -> Result<()> {
        let plan = &self.task.plan;
        let mut store = S::open(&self.task.dir, &plan.settings)?;
        if let Some(placement) = self.task.placement {
            store.place(placement)?;
        }
        // One command at a time over a socket takes so long that fewer of them tell enough.
        let timed = if self.task.peer == Kind::Redis { plan.num / 8 } else { plan.num / 2 };
        let data = Data::new(plan.num, plan.seed);
        let mut session = Session { store, plan, timed: timed.max(1), emit: self.emit };
        session.load(&data)?;
        session.store.settle()?;
        scratch::write_back(&self.task.dir)?;
        session.read(&data)?;
        session.change(&data)?;
        session.take()?;
        session.delete()?;
        session.store.close()
    }
}

/// A store under measurement.
pub(super) struct Session<'a, S> {
    pub(super) store: S,
    pub(super) plan: &'a Plan,
    /// Commands of a row.
    timed: u64,
    emit: &'a mut dyn FnMut(&Event<Row>) -> Result<()>,
}

impl<S: Store> Session<'_, S> {
    /// Runs all `steps`, which make something new, as fast as may be but for the last ones, which
    /// are timed.
    pub(super) fn grow(
        &mut self,
        row: Row,
        steps: u64,
        mut step: impl FnMut(&mut S, u64) -> Result<()>,
    ) -> Result<()> {
        let timed = if self.plan.wants(row) { self.timed.min(steps) } else { 0 };
        self.hurry(0..steps - timed, &mut step)?;
        let done = self.time(row, steps - timed..steps, &mut step)?;
        self.hurry(done..steps, &mut step)
    }

    /// Times a row that can be repeated, with a `share`-th of the usual number of commands.
    pub(super) fn measure(
        &mut self,
        row: Row,
        share: u64,
        mut step: impl FnMut(&mut S, u64) -> Result<()>,
    ) -> Result<()> {
        if !self.plan.wants(row) {
            return Ok(());
        }
        let count = (self.timed / share).max(1);
        let warm_up = count / WARM_UP_DIVISOR;
        self.hurry(0..warm_up, &mut step)?;
        self.time(row, warm_up..warm_up + count, &mut step).map(drop)
    }

    /// Times a row that consumes data: once, without a warm-up.
    pub(super) fn consume(
        &mut self,
        row: Row,
        mut step: impl FnMut(&mut S, u64) -> Result<()>,
    ) -> Result<()> {
        if !self.plan.wants(row) {
            return Ok(());
        }
        self.time(row, 0..self.timed, &mut step).map(drop)
    }

    /// Runs untimed steps.
    pub(super) fn hurry(
        &mut self,
        mut steps: Range<u64>,
        step: &mut impl FnMut(&mut S, u64) -> Result<()>,
    ) -> Result<()> {
        self.store.hurry(true);
        steps.try_for_each(|index| step(&mut self.store, index))?;
        self.store.finish()?;
        self.store.hurry(false);
        Ok(())
    }

    /// Runs steps until they end or the row's time is over; the first that did not run.
    fn time(
        &mut self,
        row: Row,
        steps: Range<u64>,
        step: &mut impl FnMut(&mut S, u64) -> Result<()>,
    ) -> Result<u64> {
        if steps.is_empty() {
            return Ok(steps.end);
        }
        let longest = Duration::from_secs_f64(self.plan.row_seconds);
        let mut next = steps.start;
        let start = Instant::now();
        while next < steps.end && start.elapsed() < longest {
            let until = (next + STRIDE).min(steps.end);
            (next..until).try_for_each(|index| step(&mut self.store, index))?;
            next = until;
        }
        self.store.finish()?;
        self.rate(row, Timed::since(start, next - steps.start))?;
        Ok(next)
    }

    fn rate(&mut self, row: Row, Timed { ops, seconds }: Timed) -> Result<()> {
        (self.emit)(&Event::Rate { row, ops, seconds })
    }

    /// Times each key's deletion by itself and shows the median as the time of one.
    pub(super) fn time_deletes(&mut self, row: Row, keys: &[&[u8]]) -> Result<()> {
        let mut times = Vec::new();
        for key in keys {
            let start = Instant::now();
            self.store.call(&Call::Del(key), Answer::Number(1))?;
            self.store.finish()?;
            times.push(start.elapsed().as_secs_f64());
        }
        let seconds = crate::measure::median::median(&times).ok_or("nothing was deleted")?;
        self.rate(row, Timed { ops: 1, seconds })
    }
}
