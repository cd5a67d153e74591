//! How the filter of a home grows and shrinks: along its ladder, by components, by another plan.

use std::time::Duration;

use super::shape::{Growth, filter_of, filter_on, memory_of};
use super::steps::Goal;
use super::{Home, SetPlan};
use crate::catalogue::Catalogue;
use crate::design::ladder::{Move, Rung, RungChoice, steps_between};
use crate::filter::DynamicFilter;
use crate::params::{ParamError, Shape};
use crate::replica::own_memory::Charge;

/// Bits up to which a filter is folded at once by a home that builds in steps: some milliseconds.
const MAX_FOLD: u64 = 1 << 23;

impl<C: Catalogue> Home<C> {
    /// Moves the filter to the rung where it should be, if that is another.
    pub(super) fn climb_or_descend(&mut self, now: Duration) {
        let Growth::Ladder(choice) = &mut self.growth else { return };
        if self.build.is_some() {
            // Asked again when that is done.
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

    /// Stands on another rung: folds the filter, or builds it again from the catalogue. Without
    /// memory for a larger filter the present one goes on, fuller than planned.
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
            // There is room for more in the filter: only what is published stands elsewhere.
            choice.moved(now, to);
            return self.tell_moved(now);
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
            Some(_) => self.tell_moved(now),
            None => self.tell_rebuilt(now),
        }
    }

    /// The filter some rungs lower, by folding, if that is short work.
    fn fold(&self, steps: Option<i32>) -> Option<DynamicFilter> {
        let down = steps.filter(|steps| *steps < 0)?.unsigned_abs();
        let is_short = self.filter.scheme().shape().bits() <= MAX_FOLD;
        (is_short || self.max_keys_at_once == u64::MAX).then(|| self.filter.folded(down).ok())?
    }

    /// Another plan. If that asks for another rung or another ladder, the filter is folded or
    /// built again, perhaps in steps, and what was published answers until the next update.
    ///
    /// # Errors
    /// If the plan's numbers are outside their ranges, or there is no memory, or more would be
    /// taken than the set may use; nothing changes then.
    pub fn replan(&mut self, now: Duration, plan: SetPlan) -> Result<(), ParamError> {
        let ladder = plan.ladder()?;
        let (before, stands, hosts) = match &self.growth {
            Growth::Ladder(choice) => {
                (Some(choice.rung()), Some(choice.filter_rung()), choice.hosts())
            }
            Growth::Components { .. } => (None, None, plan.initial_hosts()),
        };
        // Of a set that follows its hosts, the number that is planned now stays.
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
            self.tell_moved(now);
        } else {
            let filter = filter_on(self.hasher, shape)?;
            if let Some((Some(filter), Goal::Plan(choice))) =
                self.begin(Some(filter), Goal::Plan(choice))
            {
                self.growth = Growth::Ladder(choice);
                self.rebuild(filter);
                self.tell_rebuilt(now);
            }
        }
        self.plan = plan;
        self.publisher.set_policy(plan.policy);
        self.publisher.set_by_digests(plan.by_digests);
        self.publisher.set_promised(promised);
        Ok(())
    }

    /// So many hosts share the promised rate from now on. A climb that this alone makes necessary
    /// waits until `wait` is over.
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

    /// Filter and published copy are charged like this from now on.
    pub(crate) fn charge_to(&mut self, charge: Charge) {
        self.charge = Some(charge);
    }

    /// What the home is charged, if it is.
    pub(crate) const fn charge_mut(&mut self) -> Option<&mut Charge> {
        self.charge.as_mut()
    }

    /// Reserves memory for a filter that takes this many bytes with its published copy; returns
    /// whether there is as much.
    fn reserve(&mut self, bytes: u64) -> bool {
        self.charge.as_mut().is_none_or(|charge| charge.reserve(bytes))
    }

    /// Builds the filter again into another given shape.
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
        self.tell_rebuilt(now);
        Ok(())
    }

    /// Merges components that fit into one; the catalogue's old ids stay valid.
    pub(super) fn shrink(&mut self, now: Duration) {
        // Only where it saves a third: at the brim it would merge and split in turn.
        let needed = self.catalogue.len().div_ceil(self.filter.capacity()).max(1);
        if self.filter.components().len() as u64 > needed + needed.div_ceil(2)
            && !self.filter.shrink().is_empty()
        {
            self.publisher.merged(now);
        }
    }
}
