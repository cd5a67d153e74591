//! The dashboard in a real browser, against live hosts. Without a browser these tests say so and
//! pass.

mod browser;
mod synthetic;

use std::time::{Duration, Instant};

use umbel_node::access::Users;

use super::hosts::{Cluster, eventually};
use browser::Browser;

/// Hosts that notice soon when one of them is gone.
const QUICK: [&str; 5] = ["--memory", "--timing-grace", "2", "--timing-silence", "6"];

fn running(hosts: usize) -> Cluster {
    let mut cluster = Cluster::new(hosts);
    (0..hosts).for_each(|host| cluster.start(host, &QUICK));
    cluster
}

fn page(cluster: &Cluster, host: usize, view: &str) -> String {
    format!("http://{}/#/{view}", cluster.http(host))
}

/// Everything in one test: hosts and a browser are expensive to start.
#[test]
fn the_dashboard_shows_answers_and_changes_a_live_cluster() {
    let Some(browser) = Browser::start() else { return };
    let mut cluster = running(3);
    super::add(&cluster, 1, "images", "object", 500);
    super::add(&cluster, 0, "<b>bold</b>", "key", 10);

    shows_hosts_and_sets(&browser, &cluster);
    answers_a_question(&browser, &cluster);
    follows_a_host_that_dies(&browser, &mut cluster);
    changes_a_target(&browser, &cluster);
    for view in ["overview", "freshness", "traffic", "ask", "plan", "set/images"] {
        browser.open(&page(&cluster, 0, view));
        browser.wait_for("h1");
        browser.wait_for("#top .pill.ok");
        fits_a_phone(&browser, view);
    }
    works_by_keyboard(&browser, &cluster);
    assert_eq!(browser.errors(), Vec::<String>::new(), "the console");
}

/// At the width of a phone nothing but tables scrolls sideways.
fn fits_a_phone(browser: &Browser, view: &str) {
    browser.look(390, "light");
    browser.wait(&format!("{view} fits"), || {
        browser.script("return document.documentElement.scrollWidth") == 390
    });
    browser.look(1200, "light");
}

/// From the top of the page to a host, a set and its page, without a mouse.
fn works_by_keyboard(browser: &Browser, cluster: &Cluster) {
    browser.open(&page(cluster, 0, "overview"));
    browser.wait_for("tr[data-set='images'] a");
    let focused = |what: &str| {
        let script = format!("return document.activeElement.matches({})", serde_json::json!(what));
        browser.script(&script) == true
    };
    let reach = |what: &str| {
        // Every element of the page at most once.
        let reached = (0..300).any(|_| {
            browser.press("Tab", 9);
            focused(what)
        });
        assert!(reached, "the keyboard does not reach {what}");
    };
    reach("a[data-tab='freshness']");
    reach(".host[data-host='host-1']");
    let said = "return document.querySelector('.map-said').textContent.startsWith('host-1: ')";
    browser.wait("the host is described", || browser.script(said) == true);
    reach("tr[data-set='images'] a");
    browser.press("Enter", 13);
    browser.wait_for("input[name='policy']");
    let title = browser.script("return document.title");
    assert_eq!(title, "images · umbel");
}

fn shows_hosts_and_sets(browser: &Browser, cluster: &Cluster) {
    browser.open(&page(cluster, 0, "overview"));
    for host in ["host-1", "host-2"] {
        browser.wait_for(&format!(".host.ok[data-host='{host}'][data-state='up']"));
    }
    browser.wait_for(".host.self[data-host='host-0']");
    browser.wait_for_text("answers are complete");
    browser.wait_for("tr[data-set='images']");
    // Text from outside is text.
    browser.wait_for_text("<b>bold</b>");
    assert!(!browser.has("tbody b"));
    let title = browser.script("return document.title");
    assert_eq!(title, "Overview · umbel");
}

fn answers_a_question(browser: &Browser, cluster: &Cluster) {
    eventually("host 0 knows the keys", || {
        super::named(cluster, 0, "images", "object", 500, 1) == 500
    });
    browser.click("a[data-tab='ask']");
    browser.write("input[name='set']", "images");
    browser.write("input[name='key']", "object-77");
    browser.click("form.ask button");
    browser.wait_for("[data-candidate='host-1']");
    browser.wait_for_text("The answer is complete");
    browser.click(".answer button");
    browser.wait_for_text("✓ holds it");
    browser.wait_for_text("1 host confirmed: host-1");
    browser.write("input[name='key']", "nobody has this");
    browser.click("form.ask button");
    browser.wait_for_text("Nobody, as far as this host knows");
}

fn follows_a_host_that_dies(browser: &Browser, cluster: &mut Cluster) {
    browser.click("a[data-tab='overview']");
    cluster.kill(2);
    browser.wait_for(".host.grey[data-host='host-2'][data-state='gone']");
    browser.wait_for_text("2 of 3 hosts known");
    browser.wait_for_text("host-2 is gone");
    let (_, metrics) = cluster.get(0, "/metrics");
    assert!(metrics.contains("umbel_peer_up{peer=\"host-2\"} 0.0"), "{metrics}");
    let gone = "umbel_peer_state{peer=\"host-2\",state=\"gone\",reason=\"unreachable\"} 1.0";
    assert!(metrics.contains(gone), "{metrics}");
    cluster.start(2, &QUICK);
    browser.wait_for(".host.ok[data-host='host-2'][data-state='up']");
    browser.wait_for_text("answers are complete");
}

fn changes_a_target(browser: &Browser, cluster: &Cluster) {
    super::add(cluster, 0, "images", "own", 300);
    browser.open(&page(cluster, 0, "set/images"));
    browser.wait_for_text("target 1 %");
    browser.wait_for("input[name='policy']:enabled");
    browser.write("input[name='policy']", "miss:0.25,ghost=0.05");
    browser.click("form .primary");
    browser.wait_for_text("Changed. It holds from now on");
    browser.wait_for_text("target 25 %");
    browser.write("input[name='policy']", "sometimes");
    browser.click("form .primary");
    browser.wait_for_text("unknown policy 'sometimes'");
    // The browser notes the refusal, and nothing else.
    let errors = browser.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("400"), "{errors:?}");
}

#[test]
fn the_dashboard_shows_nothing_without_a_login() {
    let Some(browser) = Browser::start() else { return };
    let mut cluster = Cluster::new(1);
    let file = cluster.path("users.toml");
    let mut users = Users::default();
    users.add("alice", "read".parse().expect("a permission"), Some(b"secret")).expect("added");
    std::fs::write(&file, users.to_toml()).expect("written");
    cluster.start(0, &["--memory", "--users", &file]);
    browser.open(&page(&cluster, 0, "overview"));
    browser.wait_for("form.login");
    let shown = browser.text();
    assert!(!shown.contains("host-0") && !shown.contains("Sets"), "{shown}");
    assert_eq!(browser.errors(), Vec::<String>::new(), "the console");

    browser.write("input[name='user']", "alice");
    browser.write("input[name='password']", "guess");
    browser.click("form.login button");
    browser.wait_for_text("wrong user name or password");
    assert!(!browser.text().contains("host-0"));
    assert_eq!(browser.errors().len(), 1, "the refusal");
    browser.write("input[name='password']", "secret");
    browser.click("form.login button");
    browser.wait_for(".host.self[data-host='host-0']");
    let cookie = browser.script("return document.cookie");
    assert_eq!(cookie, "", "scripts do not see the session");

    // Removed while the page is open: the page shows the form again.
    std::fs::write(&file, Users::default().to_toml()).expect("written");
    cluster.signal(0, "HUP");
    browser.wait_for("form.login");
    assert!(!browser.text().contains("host-0"));
}

/// As many hosts and sets as should be usable: the page stays small, whatever it is fed.
#[test]
fn the_dashboard_is_usable_with_a_hundred_hosts_and_a_thousand_sets() {
    let Some(browser) = Browser::start() else { return };
    let cluster = running(1);
    synthetic::feed(&browser, 100, 1000);
    browser.open(&page(&cluster, 0, "overview"));
    browser.wait_for(".host[data-host='cache-099']");
    browser.wait_for("tr[data-set]");
    assert_eq!(browser.script("return document.querySelectorAll('.host[data-host]').length"), 100);
    let elements = browser.script("return document.querySelectorAll('*').length");
    let elements = elements.as_u64().expect("a number");
    assert!(elements < 4000, "{elements} elements");
    browser.write("input[type='search']", "tenant-0777");
    browser.wait_for("tr[data-set='objects-of-tenant-0777']");
    browser.wait("ticks arrive", || browser.script("return window.ticks >= 4") == true);
    assert_eq!(browser.errors(), Vec::<String>::new(), "the console");
    // The host itself knows none of these sets, and says so.
    browser.click("a[data-tab='freshness']");
    browser.wait_for("svg.chart path");
    let longest = browser.script("return window.longest");
    eprintln!("{elements} elements; the longest task took {longest} ms");
}

/// Pictures of every view, light and dark, wide and narrow: `cargo xtask dashboard-screenshots`.
#[test]
#[ignore = "writes pictures: cargo xtask dashboard-screenshots"]
fn screenshots_of_every_view() {
    let folder = std::env::var("UMBEL_SCREENSHOTS").expect("a folder: UMBEL_SCREENSHOTS");
    let browser = Browser::start().expect("a browser");
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut cluster = running(5);
    for host in 0..5 {
        super::add(&cluster, host, "images", &format!("image-{host}"), 20_000);
        super::add(&cluster, host, "layers", &format!("layer-{host}"), 3_000 + 500 * host);
    }
    super::add(&cluster, 1, "thumbnails", "thumbnail", 900);
    churn(
        &cluster,
        Duration::from_secs(super::hosts::from_environment("UMBEL_SCREENSHOTS_SECONDS", 75) as u64),
    );
    cluster.kill(4);
    browser.open(&page(&cluster, 0, "overview"));
    browser.wait_for(".host[data-host='host-4'][data-state='gone']");
    for (view, name) in [
        ("overview", "overview"),
        ("freshness/images", "freshness"),
        ("traffic/images", "traffic"),
        ("ask/layers", "ask"),
        ("plan", "plan"),
        ("set/images", "set"),
    ] {
        for (scheme, width) in [("light", 1200), ("dark", 1200), ("light", 390), ("dark", 390)] {
            browser.look(width, scheme);
            browser.open("about:blank");
            browser.open(&page(&cluster, 0, view));
            browser.wait_for("#top .pill.warn");
            // The history is there.
            match name {
                "freshness" => browser.wait_for_text("target 5 %"),
                "traffic" => browser.wait_for(".compare-row"),
                _ => {}
            }
            if name == "ask" {
                browser.write("input[name='key']", "layer-2-77");
                browser.click("form.ask button");
                browser.wait_for("[data-candidate='host-2']");
                browser.click(".answer button");
                browser.wait_for_text("holds it");
            }
            churn(&cluster, Duration::from_secs(2));
            let file = format!("{folder}/{name}-{scheme}-{width}.png");
            std::fs::write(&file, browser.picture()).expect("written");
            eprintln!("{file}");
        }
    }
    let errors = browser.errors();
    assert!(errors.is_empty(), "{errors:?}");
}

/// Keys come and go for a while, and somebody asks for them.
fn churn(cluster: &Cluster, time: Duration) {
    let start = Instant::now();
    let mut connections: Vec<_> = (0..4).map(|host| cluster.connect(host)).collect();
    for round in 0.. {
        if start.elapsed() >= time {
            break;
        }
        for (host, connection) in connections.iter_mut().enumerate() {
            let stamp = start.elapsed().as_nanos();
            let keys: Vec<String> = (0..12).map(|key| format!("n-{host}-{stamp}-{key}")).collect();
            let mut words: Vec<&str> = vec!["UMBEL.ADD", "images"];
            words.extend(keys.iter().map(String::as_str));
            let _: Vec<u8> = super::ask(connection, &words).expect("added");
            words[0] = "UMBEL.WHO";
            let _: Vec<Vec<String>> = super::ask(connection, &words).expect("asked");
            let old: Vec<String> =
                (0..10).map(|key| format!("image-{host}-{}", round % 2000 * 10 + key)).collect();
            let mut words: Vec<&str> = vec!["UMBEL.REM", "images"];
            words.extend(old.iter().map(String::as_str));
            let _: Vec<u8> = super::ask(connection, &words).expect("removed");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
