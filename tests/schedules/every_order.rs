//! The models of the lock-free parts, which stand beside their code.

use lsmkv::models;
use lsmkv::models::engine::memtable;

/// A test of each model.
macro_rules! models {
    ($($name:ident: $model:path;)*) => {
        $(#[test] fn $name() { $model(); })*
    };
}

models! {
    versions_of_a_key_are_found_beside_their_writer: memtable::versions_of_a_key;
    keys_of_a_bucket_are_found_beside_their_writer: memtable::keys_of_a_bucket;
    keys_beyond_a_chain_are_found_beside_their_writer: memtable::keys_beyond_a_chain;
    a_scan_finds_what_was_visible_when_it_began: memtable::scan_beside_a_writer;
    every_queued_commit_is_logged_once_and_visible: models::engine::commit_queue;
    a_read_point_holds_everything_up_to_its_sequence: models::engine::read_point_beside_a_freeze;
    no_change_of_the_view_is_lost: models::engine::changes_of_the_view;
    a_commit_is_seen_by_an_observer_or_noted_for_it: models::conflicts::a_commit_beside_an_observer;
    a_handle_is_not_freed_under_a_call: models::slot::a_value_is_not_freed_under_a_call;
    one_of_two_closes_gets_the_handle: models::slot::one_of_two_threads_takes_the_value;
    a_call_never_gets_the_next_handle: models::slot::a_call_never_gets_the_value_of_the_next_life;
}
