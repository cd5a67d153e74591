//! One host is killed and started again, while the others are asked on.
//!
//! Its process gets SIGKILL, as in a crash: nothing is said to the others. Its catalogue is in a
//! folder, so that it comes back with the objects that it had acknowledged.

use std::time::{Duration, Instant};

use anyhow::ensure;

use super::ROUND;
use super::churn::Objects;
use super::cluster::Cluster;
use super::measure::{Measuring, Outage, names};
use super::signals::Stop;
use super::view::View;
use crate::client::At;
use crate::output::count;

/// How long each part may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many of the hosts before this place name the host of an object in the middle of its range,
/// which it has had for long.
fn named_by(cluster: &Cluster, place: usize, home: &Objects) -> anyhow::Result<usize> {
    let range = home.range();
    let key = home.key(range.start + (range.end - range.start) / 2);
    let others = cluster.hosts().take(place);
    others.map(|host| names(&At::open(&host.at), &key, &home.host)).sum()
}

/// Kills the last host, waits until nobody names it, starts it again and waits until all do; `None`
/// if the demo was stopped meanwhile.
pub(super) fn run(
    cluster: &mut Cluster,
    objects: &[Objects],
    measuring: &mut Measuring<'_>,
    stop: &Stop,
    view: &mut View,
    started: Instant,
) -> anyhow::Result<Option<Outage>> {
    let place = objects.len() - 1;
    let (home, before) = (&objects[place], measuring.members());
    let wait_until_named_by = |hosts: usize,
                               cluster: &Cluster,
                               measuring: &mut Measuring<'_>,
                               view: &mut View|
     -> anyhow::Result<f64> {
        let start = Instant::now();
        while named_by(cluster, place, home)? != hosts && !stop.is_set() {
            ensure!(
                start.elapsed() < PATIENCE,
                "not every host has noticed within {} s what became of {}",
                PATIENCE.as_secs(),
                home.host
            );
            measuring.round()?;
            view.show(&measuring.measured(started.elapsed()), cluster, objects)?;
            stop.wait(ROUND / 5);
        }
        Ok(start.elapsed().as_secs_f64())
    };
    cluster.kill(place)?;
    measuring.leave_out(Some(place))?;
    view.news(&format!("{} was killed: its process is gone", home.host))?;
    let named_seconds = wait_until_named_by(0, cluster, measuring, view)?;
    measuring.round()?;
    let after = measuring.members();
    let (members_asked, missed) = (after.0 - before.0, after.1 - before.1);
    view.news(&format!(
        "{} is named no more after {named_seconds:.1} s; meanwhile others missed {} of {} objects",
        home.host,
        count(missed),
        count(members_asked)
    ))?;
    let restarted = Instant::now();
    cluster.restart(place, stop)?;
    wait_until_named_by(place, cluster, measuring, view)?;
    let back_seconds = restarted.elapsed().as_secs_f64();
    if stop.is_set() {
        return Ok(None);
    }
    view.news(&format!(
        "{} was started again with its catalogue: all others named it after {back_seconds:.1} s",
        home.host
    ))?;
    measuring.leave_out(None)?;
    let host = home.host.clone();
    Ok(Some(Outage { host, members_asked, missed, named_seconds, back_seconds }))
}
