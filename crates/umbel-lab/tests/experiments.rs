//! Every experiment, reduced: the shape of its report, its closed forms, and that the same
//! seed gives the same bytes.
//!
//! What is checked of reports is one test: a test may be a process of its own, and each process
//! would run all experiments again.

use std::path::PathBuf;
use std::sync::LazyLock;

use serde_json::Value;
use umbel_lab::page::{Tally, page};
use umbel_lab::report::Origin;
use umbel_lab::{Author, Claim, EXPERIMENTS, Experiment, Plan, Report, Silent, Verdict, find};

static REPORTS: LazyLock<Vec<Report>> = LazyLock::new(|| run_all(&Plan::reduced(1)));

/// Every check of a report, by name.
macro_rules! checks {
    ($($name:ident,)*) => { &[$((stringify!($name), $name as fn())),*] };
}

const CHECKS: &[(&str, fn())] = checks![
    closed_forms_are_those_of_the_golden_files,
    the_same_seed_gives_the_same_bytes_on_any_number_of_threads,
    another_seed_changes_what_is_simulated_and_nothing_else,
    json_has_exactly_the_promised_keys,
    every_claim_that_has_a_verdict_has_a_number_behind_it,
    every_table_has_formula_simulation_and_misses_side_by_side,
    table_2_has_20_rows_within_0_12_points_of_the_paper,
    the_plots_are_pictures_that_need_nothing_else,
    the_quick_report_lists_every_claim_with_its_verdict_and_counts_them,
    what_paper_4_says_in_numbers_is_held_against_them,
    every_claim_that_does_not_hold_has_a_reason,
    every_claim_of_a_paper_is_in_its_own_words,
];

#[test]
fn every_report_keeps_every_promise() {
    let fails = |(name, check): &&(&str, fn())| {
        println!("{name}");
        std::panic::catch_unwind(check).is_err()
    };
    let failed: Vec<&str> = CHECKS.iter().filter(fails).map(|(name, _)| *name).collect();
    assert!(failed.is_empty(), "see above: {failed:?}");
}

fn run_all(plan: &Plan) -> Vec<Report> {
    EXPERIMENTS.iter().map(|experiment| experiment.run(plan, &Silent)).collect()
}

fn report(name: &str) -> &'static Report {
    REPORTS.iter().find(|report| report.name() == name).expect("an experiment of this name")
}

fn json(report: &Report) -> Value {
    serde_json::from_str(&report.to_json()).expect("a report is JSON")
}

#[test]
fn every_experiment_of_papers_1_3_and_4_is_there() {
    let names: Vec<_> = EXPERIMENTS.iter().map(Experiment::name).collect();
    let figures = ["zhu-fig-2", "zhu-fig-6", "zhu-fig-7", "zhu-fig-8", "zhu-fig-9", "zhu-fig-10"];
    for name in figures.into_iter().chain(["zhu-table-1", "zhu-table-2", "dbf-table-1"]) {
        assert!(names.contains(&name) && find(name).is_some(), "{name}");
    }
    for figure in 1..=16 {
        assert!(find(&format!("dbf-fig-{figure}")).is_some(), "{figure}");
    }
    assert!(find("zhu-fig-3").is_none());
}

#[test]
fn every_experiment_of_paper_2_is_there() {
    for name in ["sahni-files", "sahni-filter-error", "sahni-prefix"] {
        assert!(find(name).is_some(), "{name}");
    }
}

#[test]
fn every_experiment_of_paper_5_is_there() {
    for name in (5..=15).map(|figure| format!("ro-fig-{figure}")) {
        assert!(find(&name).is_some(), "{name}");
    }
    for name in [
        "ro-fig-1",
        "ro-delay",
        "ro-overlay",
        "ro-attenuated",
        "ro-topology",
        "ro-popularity",
        "ro-staleness",
        "ro-mismatch",
        "ro-decay",
    ] {
        assert!(find(name).is_some(), "{name}");
    }
}

/// `UMBEL_BLESS=1 cargo test -p umbel-lab` writes the files anew; review them like code.
fn closed_forms_are_those_of_the_golden_files() {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden");
    for report in REPORTS.iter() {
        let path = golden.join(format!("{}.txt", report.name()));
        let found = report.closed_forms_to_text();
        if std::env::var_os("UMBEL_BLESS").is_some() {
            std::fs::write(&path, &found).expect("written");
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(found, golden, "{} differs", path.display());
    }
}

fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    for (one, other) in REPORTS.iter().zip(run_all(&Plan::reduced(1).with_threads(3))) {
        assert_eq!(one.to_json(), other.to_json());
        assert_eq!(one.to_text(), other.to_text());
        assert_eq!(one.to_csv(), other.to_csv());
        assert_eq!(one.to_svg(), other.to_svg());
    }
}

fn another_seed_changes_what_is_simulated_and_nothing_else() {
    for (one, other) in REPORTS.iter().zip(run_all(&Plan::reduced(2))) {
        assert_ne!(one.to_json(), other.to_json(), "{}", one.name());
        assert_eq!(one.closed_forms_to_text(), other.closed_forms_to_text());
    }
}

fn json_has_exactly_the_promised_keys() {
    for report in REPORTS.iter() {
        let json = json(report);
        assert_eq!(keys(&json), ["claims", "columns", "name", "rows", "source", "title"]);
        let columns = json["columns"].as_array().expect("an array");
        let mut columns: Vec<&str> =
            columns.iter().map(|name| name.as_str().expect("a name")).collect();
        columns.sort_unstable();
        for row in json["rows"].as_array().expect("an array") {
            assert_eq!(keys(row), columns, "{}", report.name());
        }
        for claim in json["claims"].as_array().expect("an array") {
            assert_eq!(
                keys(claim),
                [
                    "author",
                    "claim",
                    "finding",
                    "formula",
                    "note",
                    "quote",
                    "seeds",
                    "simulated",
                    "stated",
                    "tolerance",
                    "unit",
                    "verdict"
                ]
            );
            let verdict = claim["verdict"].as_str().expect("a word");
            assert!(["holds", "fails", "too-rare", "unverifiable"].contains(&verdict));
            assert!(claim["seeds"].is_u64() && claim["note"].is_string());
        }
    }
}

/// In alphabetical order.
fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn every_claim_that_has_a_verdict_has_a_number_behind_it() {
    for report in REPORTS.iter() {
        assert!(!report.claims().is_empty() && !report.table().rows().is_empty());
        let is_told =
            |claim: &&Claim| !matches!(claim.verdict(), Verdict::Unverifiable | Verdict::TooRare);
        for claim in report.claims().iter().filter(is_told) {
            assert!(claim.formula().is_some() || claim.simulated().is_some(), "{}", claim.claim());
            assert_eq!(claim.simulated().is_some(), claim.seeds() > 0, "{}", claim.claim());
        }
    }
}

fn every_table_has_formula_simulation_and_misses_side_by_side() {
    // A history has no closed form of its rows, nor has what is measured beyond the papers.
    let without_form = ["zhu-fig-10", "zhu-assumptions", "dbf-scalable", "dbf-attributes"];
    for report in REPORTS.iter() {
        let columns = report.table().columns();
        let has = |origin| columns.iter().any(|column| column.origin() == origin);
        assert!(has(Origin::Simulated), "{}", report.name());
        assert!(has(Origin::Formula) || without_form.contains(&report.name()), "{}", report.name());
        // Papers 1 and 3 are about replicas, of which one figure has none.
        let misses = columns.iter().any(|column| column.name().contains("miss"));
        let has_replicas = report.name().starts_with("zhu-") && report.name() != "zhu-fig-2";
        assert!(misses || !has_replicas, "{}", report.name());
        assert_eq!(report.to_csv().lines().count(), report.table().rows().len() + 1);
    }
}

fn table_2_has_20_rows_within_0_12_points_of_the_paper() {
    let json = json(report("zhu-table-2"));
    let rows = json["rows"].as_array().expect("an array");
    assert_eq!(rows.len(), 20);
    for row in rows {
        let percent = |name: &str| row[name].as_f64().expect("a number");
        let apart = percent("formula_percent") - percent("paper_estimated_percent");
        assert!(apart.abs() <= 0.12, "{row}");
        let (low, high) = (percent("simulated_low_percent"), percent("simulated_high_percent"));
        assert!((low..=high).contains(&percent("simulated_percent")), "{row}");
    }
}

fn the_plots_are_pictures_that_need_nothing_else() {
    for report in REPORTS.iter() {
        let svg = report.to_svg();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{}", report.name());
        assert!(!svg.contains("NaN") && !svg.contains("href") && !svg.contains("script"));
        assert!(svg.len() < 300_000, "{}: {}", report.name(), svg.len());
    }
}

/// The quick report, as `umbel lab report --quick` writes it: every experiment, every claim.
fn the_quick_report_lists_every_claim_with_its_verdict_and_counts_them() {
    let html = page(&REPORTS, "quick");
    let Tally { papers, ours } = Tally::of(REPORTS.iter());
    println!("{} claims of the papers: {papers}; {} of ours: {ours}", papers.total(), ours.total());
    for (counts, words) in [(papers, "claims of the papers"), (ours, "of ours")] {
        let counted = format!("{} {words}:</strong> {counts}.", counts.total());
        assert!(html.contains(&counted), "{counted}");
    }
    let claims = || REPORTS.iter().flat_map(Report::claims);
    assert_eq!(html.matches("<tr class=\"claim ").count(), claims().count());
    for (verdict, class) in [
        (Verdict::Holds, "holds"),
        (Verdict::Fails, "fails"),
        (Verdict::TooRare, "rare"),
        (Verdict::Unverifiable, "unverifiable"),
    ] {
        let count = claims().filter(|claim| claim.verdict() == verdict).count();
        assert_eq!(html.matches(&format!("<tr class=\"claim {class}\"")).count(), count);
    }
    // The first screen: ten lines, each with the numbers that it names.
    let found = html.split("<ol class=\"found\">").nth(1).expect("what was found");
    let found = found.split("</ol>").next().expect("a list");
    assert_eq!(found.matches("<li>").count(), 10, "{found}");
    assert!(!found.contains("<b></b>") && !found.contains('{'), "{found}");
    for experiment in EXPERIMENTS {
        assert!(html.contains(&format!("<article id=\"{}\">", experiment.name())));
    }
    assert!(papers.total() > 100 && papers.hold > papers.fail, "{papers}");
}

fn what_paper_4_says_in_numbers_is_held_against_them() {
    let stated = |name: &str| -> Vec<f64> {
        report(name).claims().iter().filter_map(umbel_lab::Claim::stated).collect()
    };
    assert!(stated("dbf-fig-1").starts_with(&[100.0, 10.0]));
    assert!(stated("dbf-fig-12").starts_with(&[5.0, 19.0, 20.0, 35.0]));
    for claim in &report("dbf-fig-12").claims()[..4] {
        let (stated, formula) =
            (claim.stated().expect("stated"), claim.formula().expect("a formula"));
        assert!((stated - formula).abs() <= 1.5, "{}", claim.claim());
    }
    let residue =
        report("dbf-table-1").claims().iter().find(|claim| claim.claim().contains("remembered"));
    assert_eq!(residue.and_then(umbel_lab::Claim::simulated), Some(0.0));
}

/// A claim that fails in the closed form alone fails in every run, and says why.
fn every_claim_that_does_not_hold_has_a_reason() {
    for report in REPORTS.iter() {
        for claim in report.claims().iter().filter(|claim| claim.verdict() == Verdict::Fails) {
            let (stated, formula) = (claim.stated(), claim.formula());
            // What is simulated with three seeds may fail by chance; the numbers are the reason.
            let apart = stated.zip(formula).map_or(0.0, |(stated, formula)| stated - formula);
            let by_form = apart.abs() > claim.tolerance().unwrap_or(0.0);
            assert!(!claim.note().is_empty() || !by_form, "{}: {}", report.name(), claim.claim());
        }
    }
}

/// A claim is a paper's, with a quotation, or ours, without.
fn every_claim_of_a_paper_is_in_its_own_words() {
    for claim in REPORTS.iter().flat_map(Report::claims) {
        let is_quoted = !claim.quote().is_empty();
        let is_of_points = claim.claim().starts_with("the points of ");
        let is_of_a_paper = claim.author() == Author::Paper && !is_of_points;
        assert_eq!(is_quoted, is_of_a_paper, "{}", claim.claim());
        assert!(!claim.claim().contains("ours"), "{}", claim.claim());
    }
}
