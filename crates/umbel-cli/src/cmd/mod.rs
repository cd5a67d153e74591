//! Subcommands, one file each.

mod completions;
mod config;
mod demo;
mod doctor;
mod filter;
mod host;
mod kv;
mod lab;
mod man;
mod model;
mod plan;
mod prefix;
mod restore;
mod serve;
mod store;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Command {
    Demo(demo::Demo),
    Serve(serve::Serve),
    Config(config::Config),
    Doctor(doctor::Doctor),
    Add(host::Add),
    Remove(host::Remove),
    Sync(host::Sync),
    Watch(host::Watch),
    Keys(host::KeysCommand),
    Delete(host::Delete),
    Has(host::Has),
    Who(host::Who),
    Chain(host::Chain),
    Locate(host::Locate),
    Missing(host::Missing),
    Announce(host::Announce),
    Withdraw(host::Withdraw),
    Match(host::Match),
    Hosts(host::Hosts),
    Sets(host::Sets),
    Info(host::Info),
    Publish(host::Publish),
    Leave(host::Leave),
    Backup(host::Backup),
    Restore(restore::Restore),
    Policy(host::PolicyCommand),
    Reserve(host::Reserve),
    /// Compute by formula what a filter, a replica or a routing entry will do
    Model(model::Model),
    /// Compute parameters for a target: sizes, intervals, bytes and error rates
    Plan(plan::Plan),
    Filter(filter::Filter),
    Kv(kv::Kv),
    Lab(lab::Lab),
    Prefix(prefix::PrefixCommand),
    Store(store::StoreCommand),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Demo(demo) => demo.run(),
            Self::Serve(serve) => serve.run(),
            Self::Config(config) => config.run(),
            Self::Doctor(doctor) => doctor.run(),
            Self::Add(add) => add.run(),
            Self::Remove(remove) => remove.run(),
            Self::Sync(sync) => sync.run(),
            Self::Watch(watch) => watch.run(),
            Self::Keys(keys) => keys.run(),
            Self::Delete(delete) => delete.run(),
            Self::Has(has) => has.run(),
            Self::Who(who) => who.run(),
            Self::Chain(chain) => chain.run(),
            Self::Locate(locate) => locate.run(),
            Self::Missing(missing) => missing.run(),
            Self::Announce(announce) => announce.run(),
            Self::Withdraw(withdraw) => withdraw.run(),
            Self::Match(question) => question.run(),
            Self::Hosts(hosts) => hosts.run(),
            Self::Sets(sets) => sets.run(),
            Self::Info(info) => info.run(),
            Self::Publish(publish) => publish.run(),
            Self::Leave(leave) => leave.run(),
            Self::Backup(backup) => backup.run(),
            Self::Restore(restore) => restore.run(),
            Self::Policy(policy) => policy.run(),
            Self::Reserve(reserve) => reserve.run(),
            Self::Model(command) => command.run(),
            Self::Plan(command) => command.run(),
            Self::Filter(filter) => filter.run(),
            Self::Kv(command) => command.run(),
            Self::Lab(lab) => lab.run(),
            Self::Prefix(command) => command.run(),
            Self::Store(command) => command.run(),
            Self::Completions(completions) => completions.run(),
            Self::Man(man) => man.run(),
        }
    }
}
