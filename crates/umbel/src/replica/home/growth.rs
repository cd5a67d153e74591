//! How the filter of a home grows and shrinks: along its ladder, by components, or by a new plan.

use std::time::Duration;

use super::shape::{Growth, filter_of, filter_on, memory_of};
use super::steps::Goal;
use super::{Home, SetPlan};
use crate::catalogue::Catalogue;
use crate::design::ladder::{Move, Rung, RungChoice, steps_between};
use crate::filter::DynamicFilter;
use crate::params::{ParamError, Shape};
use crate::replica::own_memory::Charge;

/// A home that builds in steps folds a filter of at most this many bits at once: that takes some
/// milliseconds.
const MAX_FOLD: u64 = 1 << 23;

impl<C: Catalogue> Home<C> {
    /// Moves the filter to another rung if the number of keys requires it.
    pub(super) fn climb_or_descend(&mut self, now: Duration) {
        let Growth::Ladder(choice) = &mut self.growth else { return };
        if self.build.is_some() {
            // This is called again when the build is done.
            return;
        }
        match choice.ask(now, self.catalogue.len()) {
            None => self.is_confined = false,
            Some(Move::Climb(to) | Move::Descend(to)) => self.move_to(now, to),
        }
        if let Growth::Ladder(choice) = &mut self.growth {
            choice.expire(now);
        }
    }

    /// Moves to another rung: folds the filter, or rebuilds it from the catalogue. If there is no
    /// memory for a larger filter, the present one stays in use, fuller than planned.
    fn move_to(&mut self, now: Duration, to: Rung) {
        let Growth::Ladder(choice) = &mut self.growth else { return };
        let filter_rung = choice.filter_rung_at(to);
        let is_climb = filter_rung > choice.filter_rung();
        self.is_confined = is_climb && !self.reserve(memory_of(filter_rung));
        let Growth::Ladder(choice) = &mut self.growth else { return };
        if self.is_confined {
            return;
        }
        let shape = choice.ladder().shape(filter_rung);
        let steps = steps_between(self.filter.scheme().shape(), &shape);
        if steps == Some(0) {
            // The filter keeps its shape, because room was reserved: only the published rung
            // changes.
            choice.moved(now, to);
            return self.report_moved(now);
        }
        let (filter, is_folded) = match self.fold(steps) {
            Some(folded) => (folded, true),
            None => {
                let Ok(filter) = filter_on(self.hasher, shape) else { return };
                match self.begin(Some(filter), Goal::Rung(to)) {
                    Some((Some(filter), _)) => (filter, false),
                    _ => return,
                }
            }
        };
        if let Growth::Ladder(choice) = &mut self.growth {
            choice.moved(now, to);
        }
        match is_folded {
            true => self.filter = filter,
            false => self.rebuild(filter),
        }
        match steps {
            Some(_) => self.report_moved(now),
            None => self.report_rebuilt(now),
        }
    }

    /// The filter folded to a lower rung, if that takes little time.
    fn fold(&self, steps: Option<i32>) -> Option<DynamicFilter> {
        let down = steps.filter(|steps| *steps < 0)?.unsigned_abs();
        let is_short = self.filter.scheme().shape().bits() <= MAX_FOLD;
        (is_short || self.max_keys_at_once == u64::MAX).then(|| self.filter.folded(down).ok())?
    }

    /// Changes the plan. If it needs another rung or another ladder, the filter is folded or
    /// rebuilt, perhaps in steps. Until the next update, other hosts use what was published before.
    ///
    /// # Errors
    /// If the plan's numbers are outside their ranges, there is no memory, or the set would use
    /// more memory than allowed; nothing changes then.
    pub fn replan(&mut self, now: Duration, plan: SetPlan) -> Result<(), ParamError> {
        let ladder = plan.ladder()?;
        let (before, stands, hosts) = match &self.growth {
            Growth::Ladder(choice) => {
                (Some(choice.rung()), Some(choice.filter_rung()), choice.hosts())
            }
            Growth::Components { .. } => (None, None, plan.initial_hosts()),
        };
        // If the new plan has no number of hosts, keep the present number.
        let hosts = plan.expected_hosts.unwrap_or(hosts);
        let reserved = plan.capacity.unwrap_or(0);
        let choice = RungChoice::new(ladder, hosts, self.catalogue.len(), reserved, before);
        let shape = ladder.shape(choice.filter_rung());
        if stands.is_none_or(|stands| choice.filter_rung() > stands)
            && !self.reserve(memory_of(choice.filter_rung()))
        {
            return Err(ParamError::Memory(shape.bits()));
        }
        let promised = ladder.replica_rate(hosts)?.get();
        let steps = steps_between(self.filter.scheme().shape(), &shape);
        let steps = steps.filter(|_| before.is_some());
        if steps == Some(0) {
            self.cancel_build();
            self.growth = Growth::Ladder(choice);
        } else if let Some(folded) = self.fold(steps) {
            self.cancel_build();
            self.filter = folded;
            self.growth = Growth::Ladder(choice);
            self.report_moved(now);
        } else {
            let filter = filter_on(self.hasher, shape)?;
            if let Some((Some(filter), Goal::Plan(choice))) =
                self.begin(Some(filter), Goal::Plan(choice))
            {
                self.growth = Growth::Ladder(choice);
                self.rebuild(filter);
                self.report_rebuilt(now);
            }
        }
        self.plan = plan;
        self.publisher.set_policy(plan.policy);
        self.publisher.set_by_digests(plan.by_digests);
        self.publisher.set_promised(promised);
        Ok(())
    }

    /// From now on this many hosts share the promised rate. If this alone makes a climb necessary,
    /// the climb is delayed by `wait`.
    pub(crate) fn expect_hosts(&mut self, now: Duration, hosts: u32, wait: Duration) {
        let Growth::Ladder(choice) = &mut self.growth else { return };
        if let Ok(promised) = choice.ladder().replica_rate(hosts) {
            choice.plan(now, hosts, self.plan.capacity.unwrap_or(0), wait);
            self.publisher.set_promised(promised.get());
        }
    }

    /// Filters of sets of more keys than this are built in steps.
    pub(crate) const fn build_in_steps(&mut self, max_keys_at_once: u64) {
        self.max_keys_at_once = max_keys_at_once;
    }

    /// From now on the memory of filter and published copy is counted in this charge.
    pub(crate) fn charge_to(&mut self, charge: Charge) {
        self.charge = Some(charge);
    }

    /// The memory charge of this home, if it has one.
    pub(crate) const fn charge_mut(&mut self) -> Option<&mut Charge> {
        self.charge.as_mut()
    }

    /// Reserves memory for a filter that takes this many bytes with its published copy. Returns
    /// whether there was enough.
    fn reserve(&mut self, bytes: u64) -> bool {
        self.charge.as_mut().is_none_or(|charge| charge.reserve(bytes))
    }

    /// Rebuilds the filter in another shape.
    ///
    /// # Errors
    /// If there is no memory; nothing changes then.
    pub(crate) fn change_shape(
        &mut self,
        now: Duration,
        shape: Shape,
        capacity: u64,
    ) -> Result<(), ParamError> {
        let filter = filter_of(self.hasher, shape, capacity)?;
        self.growth = Growth::Components { capacity };
        self.plan.capacity = Some(capacity);
        self.rebuild(filter);
        self.report_rebuilt(now);
        Ok(())
    }

    /// Merges components that fit into one; the catalogue's old ids stay valid.
    pub(super) fn shrink(&mut self, now: Duration) {
        // Merge only if this saves a third of the components. Otherwise a filter near a limit would
        // merge and split again and again.
        let needed = self.catalogue.len().div_ceil(self.filter.capacity()).max(1);
        if self.filter.components().len() as u64 > needed + needed.div_ceil(2)
            && !self.filter.shrink().is_empty()
        {
            self.publisher.merged(now);
        }
    }
}
