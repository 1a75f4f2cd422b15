//! `lsmkv completions SHELL` and `lsmkv man`, for `make install`.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::command_line::CommandLine;
use crate::failure::Outcome;

/// Arguments of `completions`.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    shell: Shell,
}

pub(crate) fn completions(args: &CompletionsArgs) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut CommandLine::command(), "lsmkv", &mut text);
    std::io::stdout().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page, with all subcommands.
pub(crate) fn manual() -> Outcome {
    let mut command = CommandLine::command();
    command.build();
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut text)?;
    for subcommand in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        let page = clap_mangen::Man::new(subcommand.clone());
        writeln!(text, ".SH {}", subcommand.get_name().to_uppercase())?;
        page.render_description_section(&mut text)?;
        page.render_options_section(&mut text)?;
    }
    std::io::stdout().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}
