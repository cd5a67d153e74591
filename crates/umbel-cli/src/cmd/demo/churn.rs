//! Churn: objects that are added to and removed from a host.
//!
//! Objects are numbered; a host has those from `from` up to `to`. Always true: an object in that
//! range is a member at the host. `to` moves only after an add has finished, `from` moves before a
//! removal is requested. So a sample taken in between never counts a removed object as missed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::cluster::Host;
use super::signals::Stop;
use super::{MISS_TARGET, SET, at};
use crate::client::{Address, At, Client};

/// The objects of one host.
pub(super) struct Objects {
    pub(super) host: String,
    pub(super) at: Address,
    from: AtomicU64,
    to: AtomicU64,
}

impl Objects {
    pub(super) fn of(host: &Host) -> Self {
        let (host, at) = (host.name.clone(), host.at.clone());
        Self { host, at, from: AtomicU64::new(0), to: AtomicU64::new(0) }
    }

    /// Numbers of the objects that the host certainly has.
    pub(super) fn range(&self) -> std::ops::Range<u64> {
        // Load `from` first: it can only grow between the two loads.
        let from = self.from.load(Ordering::SeqCst);
        from..self.to.load(Ordering::SeqCst)
    }

    /// Whether the host still has an object that it had.
    pub(super) fn still_has(&self, number: u64) -> bool {
        self.from.load(Ordering::SeqCst) <= number
    }

    pub(super) fn key(&self, number: u64) -> String {
        format!("{}/object-{number}", self.host)
    }

    pub(super) fn connect(&self) -> anyhow::Result<Client> {
        at(At::open(&self.at).connect(), &self.host)
    }

    /// Reserves the set, with the promised rates.
    pub(super) fn reserve(&self, rate: umbel::Rate, keys: u64, hosts: usize) -> anyhow::Result<()> {
        let [rate, keys, hosts] = [rate.get().to_string(), keys.to_string(), hosts.to_string()];
        let policy = format!("miss:{MISS_TARGET},ghost=0.05,shortest=0.5");
        let words = ["UMBEL.RESERVE", SET, &rate, &keys, "HOSTS", &hosts, "POLICY", &policy];
        at(self.connect()?.execute(&words.map(str::as_bytes)), &self.host)
    }

    /// Adds the next objects.
    pub(super) fn add(&self, count: u64) -> anyhow::Result<()> {
        self.add_with(&mut self.connect()?, count)
    }

    fn add_with(&self, client: &mut Client, count: u64) -> anyhow::Result<()> {
        let to = self.to.load(Ordering::SeqCst);
        self.change(client, "UMBEL.ADD", to..to + count)?;
        self.to.store(to + count, Ordering::SeqCst);
        Ok(())
    }

    /// Removes the oldest objects.
    fn remove_with(&self, client: &mut Client, count: u64) -> anyhow::Result<()> {
        let from = self.from.load(Ordering::SeqCst);
        self.from.store(from + count, Ordering::SeqCst);
        self.change(client, "UMBEL.REM", from..from + count)
    }

    fn change(
        &self,
        client: &mut Client,
        command: &str,
        numbers: std::ops::Range<u64>,
    ) -> anyhow::Result<()> {
        let keys: Vec<String> = numbers.map(|number| self.key(number)).collect();
        for chunk in keys.chunks(1000) {
            let mut words = vec![command.as_bytes(), SET.as_bytes()];
            words.extend(chunk.iter().map(String::as_bytes));
            at(client.ask(&words), &self.host)?;
        }
        Ok(())
    }

    /// Adds and removes this many objects per second, until stopped. Errors are ignored here: the
    /// check of the processes notices a host that is gone, and one that was killed comes back.
    pub(super) fn churn(&self, per_second: u64, stop: &Stop) {
        while per_second > 0 && !stop.is_set() {
            _ = self.churn_until(per_second, stop);
            stop.wait(TICK);
        }
    }

    fn churn_until(&self, per_second: u64, stop: &Stop) -> anyhow::Result<()> {
        let mut client = self.connect()?;
        let (start, mut done) = (Instant::now(), 0);
        while !stop.is_set() {
            let wanted = (start.elapsed().as_secs_f64() * per_second as f64) as u64;
            let held = self.range();
            // At most as many as there are, so that a host that lags behind is not emptied at once.
            let now = (wanted - done).min(held.end - held.start).min(10_000);
            if now > 0 {
                self.add_with(&mut client, now)?;
                self.remove_with(&mut client, now)?;
            }
            done = wanted;
            stop.wait(TICK);
        }
        Ok(())
    }
}

/// Interval between changes.
const TICK: Duration = Duration::from_millis(50);
