//! The differential test over the wire: random commands run on our server and on a real Redis, and
//! every reply is compared in both versions of the protocol.

use std::cell::RefCell;

use crate::plan::Ours;
use crate::sequence::{Difference, Generator, Tally, run_on_server, shrink};
use crate::server::Server;
use crate::support::{Lsmkv, number};

/// The number of commands in a sequence.
const LENGTH: u64 = 250;

/// Runs sequences; returns a report of the first difference.
fn compare(version: &str, ours: &Lsmkv, redis: &Server, tally: &mut Tally) -> Result<(), String> {
    let (mut client, mut redis) = (ours.connect(), redis.connect());
    for client in [&mut client, &mut redis] {
        client.call(&["HELLO", version]).unwrap();
    }
    let mut ours = Ours::Server(RefCell::new(client));
    let generator = Generator::new(|_| true);
    let first = number("LSMKV_WIRE_SEED", 1);
    let sequences = number("LSMKV_WIRE_COMMANDS", 20_000).div_ceil(LENGTH);
    for seed in first..first + sequences {
        let commands = generator.sequence(seed, LENGTH as usize);
        let stirred = seed % 2 == 1;
        let mut run = |commands: &[_], tally: &mut Tally| -> Result<(), Difference> {
            run_on_server(commands, stirred, &mut ours, &mut redis, tally)
        };
        if let Err(difference) = run(&commands, tally) {
            let again = |fewer: &[_]| run(fewer, &mut Tally::default());
            let (commands, difference) = shrink(&commands, difference, again);
            return Err(format!("RESP{version}, seed {seed}:\n{}", difference.report(&commands)));
        }
    }
    Ok(())
}

#[test]
fn every_reply_travels_as_that_of_redis() {
    let Some(redis) = Server::start("server::differential") else { return };
    let ours = Lsmkv::start(&[]);
    for version in ["2", "3"] {
        let mut tally = Tally::default();
        if let Err(report) = compare(version, &ours, &redis, &mut tally) {
            panic!("{report}");
        }
        let commands: u64 = tally.0.values().map(|(all, _)| all).sum();
        println!("RESP{version}: {commands} commands compared");
    }
}
