//! Random sequences of commands on stores that another process holds: a shared one, servers, a cluster.
//! They are reached as any program reaches them, and compared with a redis-server.

use std::cell::Cell;

use lsmkv::{Error, Options, Remote, Reply, SharedStore};

use super::plan::{Ours, Place};
use super::sequence::{Generator, Tally, knows, run_on_server, shrink};
use super::server::Server as Reference;
use super::servers::{Cluster, Server};
use super::{LENGTH, memory, number};

impl Place for Remote {
    fn command(&self, argv: &[&[u8]]) -> Result<Reply, Error> {
        Self::command(self, argv)
    }

    fn select(&self, number: u32) -> Result<Box<dyn Place>, Error> {
        Ok(Box::new(Self::select(self, number)?))
    }
}

impl Place for SharedStore {
    fn command(&self, argv: &[&[u8]]) -> Result<Reply, Error> {
        Self::command(self, argv)
    }

    fn select(&self, number: u32) -> Result<Box<dyn Place>, Error> {
        Ok(Box::new(Self::select(self, number)?))
    }
}

/// What Redis 7.0 does not have, and what it counts otherwise: keys that have expired.
const WITHOUT: [&str; 2] = ["HGETDEL", "DBSIZE"];

/// Opens the store at an address and compares random sequences of commands on it with those on a
/// redis-server. Returns how many commands were compared and how many the place does not offer.
fn compare(address: &str, test: &str, without: &[&str]) -> Option<(u64, u64)> {
    let store = Remote::open(address, &Options::default()).unwrap();
    compare_store(Box::new(store), address, test, without)
}

/// Compares random sequences of commands on an open store with those on a redis-server. Returns how
/// many commands were compared and how many the place does not offer.
fn compare_store(
    store: Box<dyn Place>,
    address: &str,
    test: &str,
    without: &[&str],
) -> Option<(u64, u64)> {
    let reference = Reference::start(test)?;
    let mut redis = reference.connect();
    let mut ours = Ours::Remote(store, Cell::new(false));
    let db = memory();
    let generator = Generator::new(|name| knows(&db, name) && !without.contains(&name));
    let seed = number("LSMKV_DIFFERENTIAL_SEED", 1);
    let commands = number("LSMKV_DIFFERENTIAL_COMMANDS", 1_000_000) / 50;
    let sequences = commands.div_ceil(LENGTH).max(1);
    let mut tally = Tally::default();
    for seed in seed..seed + sequences {
        let commands = generator.sequence(seed, usize::try_from(LENGTH).unwrap());
        if let Err(difference) = run_on_server(&commands, false, &mut ours, &mut redis, &mut tally)
        {
            let (commands, difference) = shrink(&commands, difference, |fewer| {
                run_on_server(fewer, false, &mut ours, &mut redis, &mut Tally::default())
            });
            panic!("{address}, seed {seed}:\n{}", difference.report(&commands));
        }
    }
    let compared = tally.0.values().map(|(all, _)| all).sum();
    Some((compared, sequences * LENGTH - compared))
}

#[test]
fn replies_and_content_on_a_server_of_ours_are_those_of_redis() {
    let Some(server) = Server::ours("differential::served") else { return };
    let Some((compared, left)) = compare(&server.address(), "differential::served", &[]) else {
        return;
    };
    println!("lsmkv serve: {compared} compared, {left} not");
    assert!(compared > 10 * left, "{compared} compared, {left} not");
}

/// Two handles of one process stand for two processes: the second one connects to the first.
#[test]
fn replies_and_content_of_a_store_that_another_holds_are_those_of_redis() {
    let dir = tempfile::tempdir().unwrap();
    let open = || SharedStore::open(dir.path(), &Options::default()).unwrap();
    let (holder, client) = (open(), open());
    assert!(!client.is_holder());
    let found = compare_store(Box::new(client), "shared", "differential::shared", &[]);
    let Some((compared, left)) = found else { return };
    println!("shared, not the holder: {compared} compared, {left} not");
    assert!(compared > 10 * left, "{compared} compared, {left} not");
    holder.close().unwrap();
}

#[test]
fn replies_and_content_on_a_redis_server_are_those_it_gives_itself() {
    let Some(server) = Server::redis("differential::redis", &["--databases", "16"]) else { return };
    let Some((compared, left)) = compare(&server.address(), "differential::redis", &WITHOUT) else {
        return;
    };
    println!("redis-server: {compared} compared, {left} not");
    assert!(compared > 10 * left, "{compared} compared, {left} not");
}

/// Commands with keys of several slots are left out by the place itself.
#[test]
fn replies_and_content_on_a_cluster_are_those_of_redis() {
    let Some(cluster) = Cluster::start("differential::cluster") else { return };
    let Some((compared, left)) = compare(&cluster.address(), "differential::cluster", &WITHOUT)
    else {
        return;
    };
    println!("a cluster: {compared} compared, {left} not");
    assert!(compared > left, "{compared} compared, {left} not");
}
