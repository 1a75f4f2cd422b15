//! Whether a history can be told as if one thing had happened after the other.
//!
//! An operation acts on a few counters at one point in time between its call and its return. The
//! search takes, at every point, one of the operations that may come next: none that was called
//! after another had returned. It remembers which combinations of done operations and state lead
//! nowhere.

use std::collections::HashSet;

/// The counters.
pub(crate) const KEYS: usize = 3;
pub(crate) type State = [Option<i64>; KEYS];

/// What is done to one counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Get,
    Set(i64),
    Add(i64),
    Delete,
    /// Sets it if it is missing.
    SetNew(i64),
    /// Sets it to the value of another, plus one.
    After(usize),
}

impl Action {
    /// The answer, as all commands here give it: a number or nothing.
    pub(crate) fn apply(self, key: usize, state: &mut State) -> Option<i64> {
        let old = state[key];
        match self {
            Self::Get => return old,
            Self::Set(value) => state[key] = Some(value),
            Self::Add(delta) => state[key] = Some(old.unwrap_or(0) + delta),
            Self::Delete => {
                state[key] = None;
                return Some(i64::from(old.is_some()));
            }
            Self::SetNew(value) => {
                state[key] = old.or(Some(value));
                return Some(i64::from(old.is_none()));
            }
            Self::After(other) => state[key] = Some(state[other].unwrap_or(0) + 1),
        }
        state[key]
    }
}

/// An operation that was called and has returned.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) called: u64,
    pub(crate) returned: u64,
    pub(crate) actions: Vec<(usize, Action)>,
    pub(crate) answers: Vec<Option<i64>>,
}

impl Operation {
    /// The state after it, if its answers are those it gives here.
    fn after(&self, mut state: State) -> Option<State> {
        let given = self.actions.iter().map(|(key, action)| action.apply(*key, &mut state));
        given.eq(self.answers.iter().copied()).then_some(state)
    }
}

/// Whether there is an order in which everything is as it was told, and which ends in `last`.
pub(crate) fn explains(history: &[Operation], last: State) -> bool {
    assert!(history.len() <= 64);
    let all = if history.len() == 64 { u64::MAX } else { (1 << history.len()) - 1 };
    let mut nowhere = HashSet::new();
    search(history, 0, all, [None; KEYS], last, &mut nowhere)
}

fn search(
    history: &[Operation],
    done: u64,
    all: u64,
    state: State,
    last: State,
    nowhere: &mut HashSet<(u64, State)>,
) -> bool {
    if done == all {
        return state == last;
    }
    if !nowhere.insert((done, state)) {
        return false;
    }
    let open = || (0..history.len()).filter(|n| done & 1 << n == 0);
    let first_return = open().map(|n| history[n].returned).min().unwrap();
    open().filter(|n| history[*n].called < first_return).any(|n| {
        let next = history[n].after(state);
        next.is_some_and(|next| search(history, done | 1 << n, all, next, last, nowhere))
    })
}

fn operation(called: u64, returned: u64, action: Action, answer: Option<i64>) -> Operation {
    Operation { called, returned, actions: vec![(0, action)], answers: vec![answer] }
}

#[test]
fn histories_with_an_order_are_explained_and_others_are_not() {
    let set = operation(0, 3, Action::Set(1), Some(1));
    let old_then_new =
        [set.clone(), operation(1, 2, Action::Get, None), operation(4, 5, Action::Get, Some(1))];
    assert!(explains(&old_then_new, [Some(1), None, None]));
    assert!(!explains(&old_then_new, [Some(2), None, None]), "another end");
    let stale = [set.clone(), operation(4, 5, Action::Get, None)];
    assert!(!explains(&stale, [Some(1), None, None]), "a read after the write that misses it");
    let lost = [operation(0, 9, Action::Add(1), Some(1)), operation(1, 8, Action::Add(1), Some(1))];
    assert!(!explains(&lost, [Some(1), None, None]), "a lost update");
    let both = |called, key, other, answer| Operation {
        called,
        returned: 9,
        actions: vec![(other, Action::Get), (key, Action::After(other))],
        answers: vec![None, answer],
    };
    let skew = [both(0, 0, 1, Some(1)), both(1, 1, 0, Some(1))];
    assert!(!explains(&skew, [Some(1), Some(1), None]), "write skew");
}
