//! Help texts from the command table.

use std::fmt::Write as _;

use lsmkv::{CommandInfo, commands, session_commands};

use super::dot_commands::{DOT_COMMANDS, DotCommand};

/// The name, arguments and description of a command; the name may be in any case.
pub(super) fn find(name: &str) -> Option<(&'static str, String, &'static str)> {
    let name = name.to_ascii_uppercase();
    let lower = name.to_ascii_lowercase();
    if let Some(command) = DOT_COMMANDS.iter().find(|command| command.name == lower) {
        return Some((command.name, command.arguments.to_owned(), command.doc));
    }
    if let Some(info) = session_commands().find(|info| info.name == name) {
        return Some((info.name, info.syntax.to_owned(), info.doc));
    }
    let info = commands().find(|info| info.name() == name)?;
    Some((info.name(), info.syntax(), info.doc()))
}

/// The arguments that a command lacks after the first `given` ones.
pub(super) fn missing_arguments(name: &str, given: usize) -> Option<String> {
    let upper = name.to_ascii_uppercase();
    let lower = name.to_ascii_lowercase();
    if let Some(command) = DOT_COMMANDS.iter().find(|command| command.name == lower) {
        let missing: Vec<&str> = command.arguments.split_whitespace().skip(given).collect();
        return Some(missing.join(" "));
    }
    if let Some(info) = session_commands().find(|info| info.name == upper) {
        return Some(info.missing_syntax(given));
    }
    commands().find(|info| info.name() == upper).map(|info| info.missing_syntax(given))
}

/// Help on a command or a group; without a topic, the overview.
pub(super) fn text(topic: Option<&str>) -> String {
    match topic.map(|topic| (topic, topic.strip_prefix('@'))) {
        None => overview(),
        Some((_, Some(group))) => of_group(group),
        Some((name, None)) => of_command(name),
    }
}

fn groups() -> Vec<&'static str> {
    let mut groups = Vec::new();
    for info in commands() {
        if !groups.contains(&info.group()) {
            groups.push(info.group());
        }
    }
    groups
}

fn overview() -> String {
    let mut text = String::from("The shell's own commands:\n");
    for DotCommand { name, arguments, doc, .. } in DOT_COMMANDS {
        let _ = writeln!(text, "  {:24} {doc}", format!("{name} {arguments}"));
    }
    text.push_str("\nCommands of the store, by group (help @GROUP lists one):\n");
    for group in groups() {
        let names: Vec<_> =
            commands().filter(|info| info.group() == group).map(|info| info.name()).collect();
        let _ = writeln!(text, "  {group} ({})", names.len());
    }
    let own: Vec<_> = session_commands().map(|info| info.name).collect();
    let _ = writeln!(text, "  Of a session: {}", own.join(" "));
    text.push_str("\nhelp COMMAND shows the arguments of one.\n");
    text
}

fn of_group(name: &str) -> String {
    let matches = |info: &CommandInfo| {
        info.group().to_ascii_lowercase().starts_with(&name.to_ascii_lowercase())
    };
    let mut text = String::new();
    for info in commands().filter(matches) {
        let call = format!("{} {}", info.name(), info.syntax());
        let _ = writeln!(text, "  {call}\n      {}", info.doc());
    }
    if text.is_empty() {
        let _ = writeln!(text, "There is no group {name}. There are: {}", groups().join(", "));
    }
    text
}

fn of_command(name: &str) -> String {
    match find(name) {
        Some((name, syntax, doc)) => format!("  {name} {syntax}\n  {doc}\n"),
        None => {
            let upper = name.to_ascii_uppercase();
            let near: Vec<_> =
                commands().map(|info| info.name()).filter(|it| it.starts_with(&upper)).collect();
            match near.as_slice() {
                [] => format!("There is no command {name}; help lists the groups.\n"),
                near => format!("There is no command {name}. There are: {}\n", near.join(" ")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_help() {
        for info in commands() {
            let text = of_command(&info.name().to_ascii_lowercase());
            assert!(text.contains(info.doc()), "{text}");
        }
        assert!(of_command(".read").contains("FILE"));
        assert!(of_command("multi").contains("EXEC"));
    }

    #[test]
    fn what_is_not_there_is_said_to_be_so() {
        assert!(of_command("HGE").contains("HGET HGETALL"));
        assert!(of_command("nothing").contains("no command"));
        assert!(of_group("hash").contains("HSET"));
        assert!(of_group("nothing").contains("Hashes"));
    }
}
