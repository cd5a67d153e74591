//! Output of the demo: redrawn in place on a terminal, plain lines elsewhere.

use std::time::{Duration, Instant};

use console::{Term, style};

use super::churn::Objects;
use super::cluster::Cluster;
use super::measure::{HostMeasured, Measured, Outage};
use super::{MISS_TARGET, SET};
use crate::output::{bytes, count, number, percent, print};

/// The output of the demo.
pub(super) struct View {
    form: Form,
    /// Number of lines drawn last.
    drawn: usize,
    next_line: Instant,
    introduced: bool,
    /// The last things that happened.
    news: Vec<String>,
}

enum Form {
    Picture(Term),
    Lines,
    /// Only JSON at the end.
    Nothing,
}

impl View {
    pub(super) fn new(json: bool) -> Self {
        let term = Term::stdout();
        let form = match (json, term.is_term()) {
            (true, _) => Form::Nothing,
            (false, true) => Form::Picture(term),
            (false, false) => Form::Lines,
        };
        Self { form, drawn: 0, next_line: Instant::now(), introduced: false, news: Vec::new() }
    }

    /// Shows what is being done.
    pub(super) fn status(&mut self, what: &str) -> anyhow::Result<()> {
        match self.form {
            Form::Nothing => Ok(()),
            _ => print(&format!("{what}\n")),
        }
    }

    /// Shows what has happened, until the end.
    pub(super) fn news(&mut self, what: &str) -> anyhow::Result<()> {
        match self.form {
            Form::Nothing => Ok(()),
            Form::Picture(_) => {
                self.news.push(what.to_owned());
                Ok(())
            }
            Form::Lines => print(&format!("{what}\n")),
        }
    }

    /// Shows what was promised, what was measured and what was sent.
    pub(super) fn summary(&self, measured: &Measured) -> anyhow::Result<()> {
        match self.form {
            Form::Nothing => Ok(()),
            _ => print(&format!("\n{}\n", summary(measured).join("\n"))),
        }
    }

    /// Shows the current results.
    pub(super) fn show(
        &mut self,
        measured: &Measured,
        cluster: &Cluster,
        objects: &[Objects],
    ) -> anyhow::Result<()> {
        match &self.form {
            Form::Nothing => Ok(()),
            Form::Picture(term) => {
                let mut lines = picture(measured);
                lines.extend(self.news.iter().cloned());
                lines.push(String::new());
                lines.extend(to_try(cluster, objects));
                lines.push(String::new());
                lines.push(style("Ctrl-C ends it, and everything is gone").dim().to_string());
                term.clear_last_lines(self.drawn)?;
                term.write_line(&lines.join("\n"))?;
                // A line that is wider than the terminal takes several.
                let width = usize::from(term.size().1).max(1);
                let tall = |line: &String| console::measure_text_width(line).div_ceil(width).max(1);
                self.drawn = lines.iter().map(tall).sum();
                Ok(())
            }
            Form::Lines => self.line(measured, cluster, objects),
        }
    }

    fn line(
        &mut self,
        measured: &Measured,
        cluster: &Cluster,
        objects: &[Objects],
    ) -> anyhow::Result<()> {
        if !self.introduced {
            self.introduced = true;
            let lines: Vec<String> = to_try(cluster, objects).collect();
            print(&format!("{}\n", lines.join("\n")))?;
        }
        if Instant::now() < self.next_line {
            return Ok(());
        }
        self.next_line = Instant::now() + LINE_EVERY;
        let seconds = measured.seconds;
        print(&format!("{seconds:>6.1} s: {}\n", rates(measured).join("; ")))
    }
}

const LINE_EVERY: Duration = Duration::from_secs(5);

/// The whole state, as lines.
fn picture(measured: &Measured) -> Vec<String> {
    let title =
        format!("{} hosts on this machine, for {:.0} s", measured.hosts.len(), measured.seconds);
    let mut lines = vec![style(title).bold().to_string(), String::new()];
    let names =
        format!("{:<8} {:<21} {:>9} {:>8}  missed now", "host", "port", "objects", "updates");
    lines.push(style(names).underlined().to_string());
    lines.extend(measured.hosts.iter().map(host_line));
    lines.push(String::new());
    lines.extend(rates(measured));
    lines
}

fn host_line(host: &HostMeasured) -> String {
    let HostMeasured { name, at, items, updates, miss, .. } = host;
    let (items, updates) = (count(*items as u64), count(*updates as u64));
    format!(
        "{name:<8} {at:<21} {items:>9} {updates:>8}  {} {}",
        bar(*miss / MISS_TARGET),
        percent(*miss)
    )
}

/// How much of its target is used up.
fn bar(share: f64) -> String {
    let full = (share * BAR as f64).round().clamp(0.0, BAR as f64) as usize;
    let text = format!("{}{}", "#".repeat(full), ".".repeat(BAR - full));
    let styled = if share <= 1.0 { style(text).green() } else { style(text).yellow() };
    styled.to_string()
}

const BAR: usize = 20;

/// Measured and promised rates.
fn rates(measured: &Measured) -> [String; 3] {
    let Measured { missed, members_asked, falsely_named, absent_asked, .. } = measured;
    let ratio = measured.full_broadcast_bytes / measured.bytes_sent;
    let times = match ratio.is_finite() {
        true => format!(", {} times as much", number(ratio)),
        false => String::new(),
    };
    [
        format!(
            "missed {} of {} objects of others: {} (target {})",
            count(*missed),
            count(*members_asked),
            percent(measured.miss_rate),
            percent(measured.miss_target)
        ),
        format!(
            "named somebody for {} of {} objects of nobody: {} (promised {})",
            count(*falsely_named),
            count(*absent_asked),
            percent(measured.false_positive_rate),
            percent(measured.false_positive_promised)
        ),
        format!(
            "sent {}; whole filters instead would be {}{times}",
            bytes(measured.bytes_sent),
            bytes(measured.full_broadcast_bytes)
        ),
    ]
}

/// What was promised, what was measured and what was sent.
fn summary(measured: &Measured) -> Vec<String> {
    let Measured { members_asked, missed, absent_asked, falsely_named, .. } = measured;
    let (target, promised) = (measured.miss_target, measured.false_positive_promised);
    let title = format!("In {:.0} s, {} hosts:", measured.seconds, measured.hosts.len());
    let mut lines = vec![
        format!("{title:<48} {:>10} {:>10}", "promised", "measured"),
        row("objects of others that were missed", target, *missed, *members_asked),
        row(
            "objects of nobody for which a host was named",
            promised,
            *falsely_named,
            *absent_asked,
        ),
    ];
    if let Some(Outage { host, members_asked, missed, named_seconds, back_seconds }) =
        &measured.outage
    {
        let what = format!("the same as the first, while {host} was gone");
        lines.push(row(&what, target, *missed, *members_asked));
        lines.push(format!(
            "{host} was killed: named for {named_seconds:.1} s more, back {back_seconds:.1} s after its start"
        ));
    }
    let [.., sent] = rates(measured);
    lines.push(format!("updates: {sent}"));
    lines
}

/// One promise, what was measured, and whether it was kept. A sample may exceed a rate that is kept
/// by two standard deviations.
fn row(what: &str, promised: f64, count: u64, asked: u64) -> String {
    let asked = asked.max(1) as f64;
    let found = count as f64 / asked;
    let chance = 2.0 * (promised * (1.0 - promised) / asked).sqrt();
    let verdict = match found {
        found if found <= promised => "kept",
        found if found <= promised + chance => "kept, as far as so small a sample can tell",
        _ => "NOT KEPT",
    };
    format!("{what:<48} {:>10} {:>10}  {verdict}", percent(promised), percent(found))
}

/// The dashboard and command lines that work while the demo runs.
fn to_try(cluster: &Cluster, objects: &[Objects]) -> impl Iterator<Item = String> {
    let first = cluster.hosts().next().map(|host| (host.at.clone(), host.http.clone()));
    let last = objects.last().map(|home| home.key(home.range().end.saturating_sub(1)));
    first.zip(last).into_iter().flat_map(|((at, http), key)| {
        [
            format!("see: http://{http}/ in a browser: a live dashboard of all hosts"),
            format!("try: redis-cli -p {} UMBEL.WHO {SET} {key}", at.port()),
            format!("     umbel who --at {at} {SET} {key}"),
        ]
    })
}
