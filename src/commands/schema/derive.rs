//! Derives facts from the arguments of a command: arity, key positions, and the position of a
//! member.

use super::spec::{Arg, KeyPositions, MemberPosition};

/// The number of arguments including the command's name; negative for a minimum.
pub(crate) const fn arity(args: &[Arg]) -> isize {
    let (least, exact) = least(args);
    if exact { least + 1 } else { -least - 1 }
}

/// The smallest number of arguments of a sequence, and whether it is also the largest.
const fn least(args: &[Arg]) -> (isize, bool) {
    let [first, rest @ ..] = args else { return (0, true) };
    let (own, own_exact) = match first {
        Arg::Optional(_) => (0, false),
        Arg::OneOf(sequences) => (shortest(sequences), false),
        Arg::Many(sequence) => (least(sequence).0, false),
        Arg::Counted(_, sequence) => (1 + least(sequence).0, false),
        _ => (1, true),
    };
    let (others, others_exact) = least(rest);
    (own + others, own_exact && others_exact)
}

const fn shortest(sequences: &[&[Arg]]) -> isize {
    match sequences {
        [] => 0,
        [only] => least(only).0,
        [first, rest @ ..] => {
            let (own, others) = (least(first).0, shortest(rest));
            if own < others { own } else { others }
        }
    }
}

/// The keys at fixed positions, or counted ones. Keys after optional arguments are not included: a
/// command with such keys runs alone.
pub(crate) const fn keys(args: &[Arg]) -> KeyPositions {
    keys_from(args, 1, KeyPositions::None)
}

const fn keys_from(args: &[Arg], at: usize, found: KeyPositions) -> KeyPositions {
    let [arg, rest @ ..] = args else { return found };
    // Keys at fixed places follow each other.
    let first = match found {
        KeyPositions::Range { first, .. } => first,
        _ => at,
    };
    match arg {
        Arg::Key(_) => {
            let last = at.cast_signed();
            keys_from(rest, at + 1, KeyPositions::Range { first, last, step: 1 })
        }
        Arg::Many([Arg::Key(_)]) => {
            KeyPositions::Range { first, last: -1 - least(rest).0, step: 1 }
        }
        Arg::Many([Arg::Key(_), _]) => KeyPositions::Range { first: at, last: -1, step: 2 },
        Arg::Counted(_, [Arg::Key(_)]) => {
            let before = match found {
                KeyPositions::Range { last, .. } => last.unsigned_abs(),
                _ => 0,
            };
            KeyPositions::Counted { at, before }
        }
        Arg::Optional(_) | Arg::OneOf(_) | Arg::Many(_) | Arg::Counted(..) => found,
        _ => keys_from(rest, at + 1, found),
    }
}

/// The first member at a fixed position, or the last argument if that is always a member.
pub(crate) const fn member(args: &[Arg]) -> MemberPosition {
    match member_from(args, 1) {
        MemberPosition::None if ends_in_member(args) => MemberPosition::Last,
        found => found,
    }
}

const fn member_from(args: &[Arg], at: usize) -> MemberPosition {
    match args {
        [] | [Arg::Optional(_) | Arg::OneOf(_), ..] => MemberPosition::None,
        [Arg::Member(_), ..] => MemberPosition::At(at),
        [Arg::Many(sequence), ..] => member_from(sequence, at),
        [Arg::Counted(_, sequence), ..] => member_from(sequence, at + 1),
        [_, rest @ ..] => member_from(rest, at + 1),
    }
}

const fn ends_in_member(args: &[Arg]) -> bool {
    match args {
        [.., Arg::Member(_)] => true,
        [.., Arg::Many(sequence)] => ends_in_member(sequence),
        _ => false,
    }
}
