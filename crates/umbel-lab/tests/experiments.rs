//! Every experiment, reduced: the shape of its report, its closed forms, and that the same
//! seed gives the same bytes.

use std::path::PathBuf;
use std::sync::LazyLock;

use serde_json::Value;
use umbel_lab::report::Origin;
use umbel_lab::{EXPERIMENTS, Experiment, Plan, Report, Silent, Verdict, find};

static REPORTS: LazyLock<Vec<Report>> = LazyLock::new(|| run_all(&Plan::reduced(1)));

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
fn every_experiment_of_papers_1_and_3_is_there() {
    let names: Vec<_> = EXPERIMENTS.iter().map(Experiment::name).collect();
    let figures = ["zhu-fig-2", "zhu-fig-6", "zhu-fig-7", "zhu-fig-8", "zhu-fig-9", "zhu-fig-10"];
    for name in figures.into_iter().chain(["zhu-table-1", "zhu-table-2"]) {
        assert!(names.contains(&name) && find(name).is_some(), "{name}");
    }
    assert!(find("zhu-fig-3").is_none());
}

#[test]
fn every_experiment_of_paper_5_is_there() {
    for name in (5..=15).map(|figure| format!("ro-fig-{figure}")) {
        assert!(find(&name).is_some(), "{name}");
    }
    for name in ["ro-fig-1", "ro-overlay", "ro-topology", "ro-popularity", "ro-staleness"] {
        assert!(find(name).is_some(), "{name}");
    }
}

/// `UMBEL_BLESS=1 cargo test -p umbel-lab` writes the files anew; review them like code.
#[test]
fn closed_forms_are_those_of_the_golden_files() {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden");
    for report in REPORTS.iter() {
        let path = golden.join(format!("{}.txt", report.name()));
        let found = report.closed_forms_to_text();
        if std::env::var_os("UMBEL_BLESS").is_some() {
            std::fs::write(&path, &found).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(found, golden, "{} differs", path.display());
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    for (one, other) in REPORTS.iter().zip(run_all(&Plan::reduced(1).with_threads(3))) {
        assert_eq!(one.to_json(), other.to_json());
        assert_eq!(one.to_text(), other.to_text());
        assert_eq!(one.to_csv(), other.to_csv());
        assert_eq!(one.to_svg(), other.to_svg());
    }
}

#[test]
fn another_seed_changes_what_is_simulated_and_nothing_else() {
    for (one, other) in REPORTS.iter().zip(run_all(&Plan::reduced(2))) {
        assert_ne!(one.to_json(), other.to_json(), "{}", one.name());
        assert_eq!(one.closed_forms_to_text(), other.closed_forms_to_text());
    }
}

#[test]
fn json_has_exactly_the_promised_keys() {
    for report in REPORTS.iter() {
        let json = json(report);
        assert_eq!(keys(&json), ["claims", "columns", "name", "rows", "source", "title"]);
        let columns = json["columns"].as_array().expect("an array");
        let mut columns: Vec<&str> = columns.iter().map(|name| name.as_str().unwrap()).collect();
        columns.sort_unstable();
        for row in json["rows"].as_array().expect("an array") {
            assert_eq!(keys(row), columns, "{}", report.name());
        }
        for claim in json["claims"].as_array().expect("an array") {
            assert_eq!(
                keys(claim),
                [
                    "claim",
                    "formula",
                    "note",
                    "seeds",
                    "simulated",
                    "stated",
                    "tolerance",
                    "verdict"
                ]
            );
            let verdict = claim["verdict"].as_str().expect("a word");
            assert!(["holds", "fails", "unverifiable"].contains(&verdict));
            assert!(claim["seeds"].is_u64() && claim["note"].is_string());
        }
    }
}

/// In alphabetical order.
fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn every_claim_that_has_a_verdict_has_a_number_behind_it() {
    for report in REPORTS.iter() {
        assert!(!report.claims().is_empty() && !report.table().rows().is_empty());
        for claim in report.claims().iter().filter(|c| c.verdict() != Verdict::Unverifiable) {
            assert!(claim.formula().is_some() || claim.simulated().is_some(), "{}", claim.claim());
            assert_eq!(claim.simulated().is_some(), claim.seeds() > 0, "{}", claim.claim());
        }
    }
}

#[test]
fn every_table_has_formula_simulation_and_misses_side_by_side() {
    for report in REPORTS.iter() {
        let columns = report.table().columns();
        let has = |origin| columns.iter().any(|column| column.origin() == origin);
        // A history has no closed form of its rows, and a filter without replica no misses.
        assert!(has(Origin::Simulated), "{}", report.name());
        assert!(has(Origin::Formula) || report.name() == "zhu-fig-10", "{}", report.name());
        let misses = columns.iter().any(|column| column.name().contains("miss"));
        let has_replicas = report.name().starts_with("zhu") && report.name() != "zhu-fig-2";
        assert!(misses || !has_replicas, "{}", report.name());
        assert_eq!(report.to_csv().lines().count(), report.table().rows().len() + 1);
    }
}

#[test]
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

#[test]
fn the_plots_are_pictures_that_need_nothing_else() {
    for report in REPORTS.iter() {
        let svg = report.to_svg();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{}", report.name());
        assert!(!svg.contains("NaN") && !svg.contains("href") && !svg.contains("script"));
        assert!(svg.len() < 300_000, "{}: {}", report.name(), svg.len());
    }
}
