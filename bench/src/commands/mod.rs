//! Redis commands on lsmkv and its peers: how many per second, and ratios against the goals.
//!
//! - `rows`: the lines of the table and their goals;
//! - `plan`, `session`, `work`: a child: what it runs, when it reads the clock, with which
//!   arguments;
//! - `call`, `peers`, `placement`: a command, the stores that run it, and on which cores;
//! - `report`: medians, ratios, the table.

mod call;
pub(crate) mod peers;
mod placement;
pub(crate) mod plan;
mod report;
pub(crate) mod rows;
pub(crate) mod session;
mod work;

use crate::Result;
use crate::args::Commands;
use crate::report::{json, write};
use crate::runner::{in_child, interleaved};
use peers::Kind;
use placement::Placement;
use session::Task;

/// The name of the subcommand that a child is started with.
pub(crate) const CHILD: &str = "commands-child";

/// Whether every peer that is there finished all its repeats.
pub(crate) fn command(args: &Commands) -> Result<bool> {
    let plan = args.plan();
    let peers = placed(args.wanted_peers())?;
    let titles: Vec<String> = peers.iter().copied().map(title).collect();
    let named: Vec<_> = peers.into_iter().zip(titles.iter().map(String::as_str)).collect();
    let samples = interleaved(args.dir.as_deref(), args.repeats, &named, |peer, dir, samples| {
        let (peer, placement) = peer;
        let task = Task { peer, placement, plan: plan.clone(), dir: dir.to_owned() };
        in_child(CHILD, &task, samples)
    })?;
    let summary = report::Summary::new(&plan, args.repeats, &samples);
    print!("{}", report::render(&summary));
    if !args.no_write {
        let written = write(&args.out, "commands", &[("json", json::render(&summary)?)])?;
        println!("\nwritten: {}", written.join(", "));
    }
    Ok(summary.failures.is_empty())
}

/// A store and, for a server, where it runs: what a child measures.
type Placed = (Kind, Option<Placement>);

fn title((kind, placement): Placed) -> String {
    match placement {
        Some(placement) => format!("{}-{}", kind.title(), placement.word()),
        None => kind.title().to_owned(),
    }
}

/// The peers that are there, a server once for each placement.
fn placed(wanted: Vec<Kind>) -> Result<Vec<Placed>> {
    let placements = Placement::possible()?;
    let mut all = Vec::new();
    for kind in wanted.into_iter().filter(|kind| kind.absence().is_none()) {
        if kind.is_server() {
            all.extend(placements.iter().map(|placement| (kind, Some(*placement))));
        } else {
            all.push((kind, None));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command};
    use crate::event::Event;
    use crate::scratch;
    use rows::Row;

    fn measured(peer: Kind, options: &[&str]) -> Vec<Row> {
        let args = Args::parse_from([&["bench", "commands", "--num", "400"], options].concat());
        let Some(Command::Commands(args)) = args.command else { panic!("{args:?}") };
        let scratch = scratch::create(None).unwrap();
        let placement = peer.is_server().then_some(Placement::Together);
        let task = Task { peer, placement, plan: args.plan(), dir: scratch.path().to_owned() };
        let mut rows = Vec::new();
        session::run(&task, &mut |event| {
            let Event::Rate { row, ops, seconds } = event else { panic!("{event:?}") };
            assert!(*ops > 0 && *seconds > 0.0, "{event:?}");
            rows.push(*row);
            Ok(())
        })
        .unwrap();
        rows.sort();
        rows
    }

    /// Every answer is checked by the session itself.
    #[test]
    fn a_session_measures_every_row_a_store_has_on_every_store_that_is_there() {
        for peer in Kind::ALL.into_iter().filter(|peer| peer.absence().is_none()) {
            let lacks = match peer {
                Kind::RocksdbTypes => Some(Row::Spop),
                Kind::RedisPipelined => Some(Row::DelBig),
                Kind::Lsmkv | Kind::Redis => None,
            };
            let expected = Row::all().filter(|row| Some(*row) != lacks);
            assert!(measured(peer, &[]).into_iter().eq(expected), "{peer:?}");
        }
    }

    #[test]
    fn a_session_measures_only_what_is_wanted_whatever_that_needs() {
        for row in Row::all() {
            let name = serde_json::to_string(&row).unwrap();
            assert_eq!(measured(Kind::Lsmkv, &["--rows", name.trim_matches('"')]), [row]);
        }
    }
}
