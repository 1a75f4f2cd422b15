//! Refuses entries of the schema that would take the wrong locks, or from which no correct code can
//! be generated.

use crate::schema::spec::{
    Access, Arg, Body, Command, Flags, Function, Functions, Group, KeyPositions, Parameter,
    ParameterKind, Parser, Words,
};

/// Returns the first fault of the entries.
pub(crate) fn check(groups: &[Group]) -> Result<(), String> {
    let mut names = Vec::new();
    for command in groups.iter().flat_map(|group| group.commands) {
        if names.contains(&command.name) {
            return Err(format!("{} has two entries", command.name));
        }
        names.push(command.name);
        check_locks(command)?;
        check_parser(command)?;
        check_functions(command)?;
    }
    Ok(())
}

fn check_locks(command: &Command) -> Result<(), String> {
    let locks = matches!(command.access, Access::Write | Access::AloneWith(_));
    let none = command.keys == KeyPositions::None && !command.flags.has(Flags::NO_KEYS);
    if locks && none {
        return Err(format!("{} writes but names no keys", command.name));
    }
    Ok(())
}

/// Generated code reads arguments in sequence, so it cannot read options.
fn check_parser(command: &Command) -> Result<(), String> {
    let name = command.name;
    if command.parser != Parser::Generated {
        return Ok(());
    }
    if let Access::AloneWith(word) = command.access {
        return Err(format!(
            "{name} runs alone with {word}, an option, so its arguments need parsed_by_hand"
        ));
    }
    if !is_flat(command.args) {
        return Err(format!("{name} has options, so its arguments need parsed_by_hand"));
    }
    Ok(())
}

/// Whether generated code can read the arguments: in sequence, the last one perhaps repeated.
fn is_flat(args: &[Arg]) -> bool {
    let plain = |arg: &Arg| {
        matches!(
            arg,
            Arg::Key(_)
                | Arg::Bytes(_)
                | Arg::Member(_)
                | Arg::Int(_)
                | Arg::Float(_)
                | Arg::Choice(..)
        )
    };
    match args {
        [first @ .., Arg::Many(sequence)] => {
            first.iter().all(plain) && sequence.iter().all(plain) && sequence.len() <= 2
        }
        all => all.iter().all(plain),
    }
}

fn check_functions(command: &Command) -> Result<(), String> {
    let functions = match command.functions {
        Functions::Listed(list) => list,
        Functions::Derived(_, _, more) => {
            check_derived(command)?;
            more
        }
    };
    functions.iter().try_for_each(check_words)
}

/// A derived function passes its parameters to a method as they are, and a number is no variant of
/// an enum.
fn check_derived(command: &Command) -> Result<(), String> {
    match choice_in(command.args) {
        Some(argument) => Err(format!(
            "{}: no C function can be derived from the choice {argument}, so list the functions",
            command.name
        )),
        None => Ok(()),
    }
}

/// The name of the first choice that a derived function would take.
fn choice_in(args: &[Arg]) -> Option<&'static str> {
    args.iter().find_map(|arg| match *arg {
        Arg::Choice(name, ..) => Some(name),
        Arg::Many(sequence) => choice_in(sequence),
        _ => None,
    })
}

/// Words that run a command use every parameter and every flag.
fn check_words(function: &Function) -> Result<(), String> {
    let Body::Words(words) = function.body else { return Ok(()) };
    for parameter in function.parameters {
        let named = words.iter().any(|word| parameter_of(word) == Some(parameter.name));
        let ParameterKind::Flags(flags, _) = parameter.kind else {
            if !named {
                return Err(format!("{} does not use {}", function.name, parameter.name));
            }
            continue;
        };
        let unused = |flag: &&&str| !named && !uses_flag(words, function.parameters, flag);
        if let Some(flag) = flags.iter().find(unused) {
            return Err(format!("{} does not use the flag {flag}", function.name));
        }
    }
    Ok(())
}

/// The parameter that a word stands for.
fn parameter_of(word: &Words) -> Option<&'static str> {
    match *word {
        Words::Of(name) | Words::IfGiven(_, name) | Words::BeforeEach(_, name) => Some(name),
        Words::Word(_) | Words::CountOf(_) | Words::Flag(_) | Words::FlagAs(..) => None,
    }
}

/// Whether a word is a flag's, or a bound is excluded by it.
fn uses_flag(words: &[Words], parameters: &[Parameter], flag: &str) -> bool {
    let in_words = words.iter().any(|word| match word {
        Words::Flag(name) | Words::FlagAs(name, _) => *name == flag,
        _ => false,
    });
    let in_bounds = parameters.iter().any(|parameter| match parameter.kind {
        ParameterKind::ScoreBound(name) | ParameterKind::MemberBound(name, _) => name == flag,
        _ => false,
    });
    in_words || in_bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::GROUPS;
    use crate::schema::spec::{Output, ReplyKind};

    const KEY: Parameter = Parameter::new("key", ParameterKind::Key);

    const fn command(access: Access, args: &'static [Arg]) -> Command {
        Command::new("NAME", "1.0.0", access, args, ReplyKind::Int, "O(1)", "Does it.")
    }

    fn fault_of(command: Command) -> String {
        let commands: &'static [Command] = Box::leak(Box::new([command]));
        let group = Group { module: "module", title: "Title", commands };
        check(&[group]).expect_err("the entry has a fault")
    }

    #[test]
    fn the_schema_has_no_fault() {
        assert_eq!(check(GROUPS), Ok(()));
    }

    #[test]
    fn an_unused_parameter_is_refused() {
        const INDEX: Parameter = Parameter::new("index", ParameterKind::Int);
        const ONE: Function =
            Function::words("name", &[KEY, INDEX], &[Words::Of("key")], Output::NONE, "");
        let entry = command(Access::Read, &[Arg::Key("key"), Arg::Int("index")]).functions(&[ONE]);
        assert_eq!(fault_of(entry), "name does not use index");
    }

    #[test]
    fn an_unused_flag_is_refused() {
        const FLAGS: Parameter = Parameter::new("flags", ParameterKind::Flags(&["NX", "XX"], &[]));
        const WORDS: &[Words] = &[Words::Of("key"), Words::Flag("NX")];
        const ONE: Function = Function::words("name", &[KEY, FLAGS], WORDS, Output::NONE, "");
        let entry = command(Access::Read, &[Arg::Key("key")]).functions(&[ONE]);
        assert_eq!(fault_of(entry), "name does not use the flag XX");
    }

    #[test]
    fn an_option_that_makes_a_command_run_alone_needs_a_parser_by_hand() {
        let entry = command(Access::AloneWith("STORE"), &[Arg::Key("key")]);
        let fault = "NAME runs alone with STORE, an option, so its arguments need parsed_by_hand";
        assert_eq!(fault_of(entry), fault);
    }

    #[test]
    fn a_choice_needs_listed_functions() {
        const SIDE: Arg = Arg::Choice("side", "Side", &["LEFT", "RIGHT"]);
        let entry = command(Access::Read, &[Arg::Key("key"), SIDE]);
        let fault =
            "NAME: no C function can be derived from the choice side, so list the functions";
        assert_eq!(fault_of(entry), fault);
    }

    #[test]
    fn a_write_without_keys_is_refused() {
        assert_eq!(fault_of(command(Access::Write, &[])), "NAME writes but names no keys");
    }
}
