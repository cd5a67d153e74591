//! What `who` costs while updates arrive, beside what it costs when none do.
//!
//! Prints percentiles of one question's time in microseconds: alone, then with a home that
//! publishes a changed filter twenty times a second. Then how many questions two threads ask in
//! the time in which one asks some, under the same updates, in rounds that take turns; and how much of
//! a processor these updates take, at home and at the host, which two threads on two processors
//! cannot ask in. Run it with
//! `cargo bench -p umbel-node --bench who`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use umbel_node::{Host, Lifetime, LocalNetwork, Reserve};

const SET: &str = "objects";

fn keys(range: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    range.map(|key| format!("object-{key}").into_bytes()).collect()
}

fn slices(keys: &[Vec<u8>]) -> Vec<&[u8]> {
    keys.iter().map(Vec::as_slice).collect()
}

/// Asks for one key after the other; the times, sorted.
fn ask(host: &Host, held: &[&[u8]], time: Duration) -> Vec<Duration> {
    let (end, mut times) = (Instant::now() + time, Vec::new());
    for key in held.iter().cycle() {
        let start = Instant::now();
        host.who(SET, &[key], &mut |hosts| assert_eq!(hosts, ["home"])).expect("the set is known");
        times.push(start.elapsed());
        if start >= end {
            break;
        }
    }
    times.sort_unstable();
    times
}

fn print(what: &str, times: &[Duration]) {
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    let count = times.len();
    println!(
        "{what:<16} {count:>10} questions, µs: median {:.2}, p99 {:.2}, p99.9 {:.2}, longest {:.0}",
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0),
    );
}

/// Questions that so many threads together ask in a time.
fn count(host: &Host, held: &[&[u8]], time: Duration, threads: usize) -> u64 {
    let end = Instant::now() + time;
    let ask = |first: usize| {
        let mut questions = 0;
        for key in held.iter().cycle().skip(first) {
            host.who(SET, &[key], &mut |hosts| assert!(!hosts.is_empty())).expect("known");
            questions += 1;
            if questions % 64 == 0 && Instant::now() >= end {
                break;
            }
        }
        questions
    };
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || ask(thread * held.len() / threads)))
            .collect();
        asking.into_iter().map(|asking| asking.join().expect("asked")).sum()
    })
}

/// Processor time that the threads of updates have used, where the system tells.
fn time_of_updates() -> Option<Duration> {
    let mut nanos = 0;
    for thread in std::fs::read_dir("/proc/self/task").ok()? {
        let thread = thread.ok()?.path();
        let name = std::fs::read_to_string(thread.join("comm")).unwrap_or_default();
        if ["umbel-driver", "umbel-builder", "updates"].contains(&name.trim()) {
            let used = std::fs::read_to_string(thread.join("schedstat")).ok()?;
            nanos += used.split(' ').next()?.parse::<u64>().ok()?;
        }
    }
    Some(Duration::from_nanos(nanos))
}

/// What a second thread adds.
fn print_scaling(host: &Host, held: &[&[u8]], time: Duration) {
    let (start, before) = (Instant::now(), time_of_updates());
    let mut ratios: Vec<f64> = (0..7)
        .map(|_| count(host, held, time, 2) as f64 / count(host, held, time, 1) as f64)
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    println!(
        "two threads / one: {:.2} (median of 7; {:.2} to {:.2})",
        ratios[3], ratios[0], ratios[6]
    );
    if let (Some(before), Some(after)) = (before, time_of_updates()) {
        let share = (after - before).as_secs_f64() / start.elapsed().as_secs_f64();
        println!("updates take {:.0} % of a processor", share * 100.0);
    }
}

#[tokio::main]
async fn main() {
    // `cargo test --benches` only wants to know that it runs.
    let is_bench = std::env::args().any(|word| word == "--bench");
    let (held, time) =
        if is_bench { (200_000, Duration::from_secs(5)) } else { (500, Duration::from_millis(50)) };
    let network = LocalNetwork::new();
    let home = Host::builder().name("home").local(&network).start().await.expect("started");
    let host = Host::builder().name("host").local(&network).start().await.expect("started");
    let plan = Reserve {
        false_positive: 0.01,
        capacity: u64::from(held) * 2,
        expected_hosts: None,
        policy: Some("interval:0.05,shortest=0.01".parse().expect("a policy")),
        lifetime: Lifetime::Default,
        confirm: None,
        chains: None,
    };
    home.reserve(SET, plan).expect("reserved");
    let stable = keys(0..held);
    home.add(SET, &slices(&stable), Lifetime::Default, &mut Vec::new()).expect("added");
    home.publish(SET).expect("published");
    while host.who_has(SET, &stable[stable.len() - 1]).unwrap_or_default() != ["home"] {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    print("no updates", &ask(&host, &slices(&stable), time));
    let done = AtomicBool::new(false);
    let before = host.set_info(SET).expect("known").updates_received;
    std::thread::scope(|scope| {
        let updates = std::thread::Builder::new().name("updates".into());
        let update = || {
            // A hundredth of the keys goes and another comes, again and again.
            let fresh = keys(held..held + held.div_ceil(100));
            while !done.load(Ordering::Relaxed) {
                home.add(SET, &slices(&fresh), Lifetime::Default, &mut Vec::new()).expect("added");
                std::thread::sleep(Duration::from_millis(50));
                home.remove(SET, &slices(&fresh), &mut Vec::new()).expect("removed");
                std::thread::sleep(Duration::from_millis(50));
            }
        };
        updates.spawn_scoped(scope, update).expect("started");
        print("under updates", &ask(&host, &slices(&stable), time));
        print_scaling(&host, &slices(&stable), time / 5);
        done.store(true, Ordering::Relaxed);
    });
    println!("updates meanwhile: {}", host.set_info(SET).expect("known").updates_received - before);
    home.stop().await;
    host.stop().await;
}
