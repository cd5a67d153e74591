//! Runs the binary and looks at what it says.

use assert_cmd::Command;
use serde_json::Value;

/// A command with options that work, and what a bad value of each is told.
pub(crate) struct Case {
    /// `umbel` and this are the command.
    pub(crate) command: &'static str,
    /// Option, a value that works, a value outside its range, a part of the range as told.
    pub(crate) options: &'static [(&'static str, &'static str, &'static str, &'static str)],
}

impl Case {
    fn arguments(&self, changed: &str, value: Option<&str>) -> Vec<String> {
        let mut arguments: Vec<String> = self.command.split(' ').map(str::to_owned).collect();
        for (option, good, ..) in self.options {
            let value = if *option == changed { value } else { Some(*good) };
            if let Some(value) = value {
                arguments.extend([(*option).to_owned(), value.to_owned()]);
            }
        }
        arguments
    }

    /// Every option, with every kind of bad value, one at a time.
    pub(crate) fn refuses_bad_values(&self) {
        assert_eq!(run(&self.arguments("", None)).status.code(), Some(0), "{}", self.command);
        for (option, _, outside, range) in self.options {
            for bad in [*outside, "-1", "nan", "inf", "-inf", "twelve", "1,5", "1e999", " "] {
                refused(&self.arguments(option, Some(bad)), option, range);
            }
            refused(&self.arguments(option, Some("")), option, "");
        }
    }

    /// Every option that has no default is missed.
    pub(crate) fn needs(&self, options: &[&str]) {
        for option in options {
            refused(&self.arguments(option, None), option, "");
        }
    }
}

fn run<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) -> std::process::Output {
    let mut umbel = Command::cargo_bin("umbel").expect("the binary is built");
    umbel.args(arguments).output().expect("the binary runs")
}

/// Exit 2, nothing on standard output, one line that has both texts on standard error.
pub(crate) fn refused<S: AsRef<std::ffi::OsStr> + std::fmt::Debug>(
    arguments: &[S],
    option: &str,
    range: &str,
) {
    let output = run(arguments);
    let stderr = String::from_utf8(output.stderr).expect("messages are text");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    assert!(stderr.contains(option) && stderr.contains(range), "{arguments:?}: {stderr}");
}

/// What a command line prints.
pub(crate) fn printed(line: &str) -> String {
    let output = run(&line.split(' ').collect::<Vec<_>>());
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{line}: {stderr}");
    assert!(stderr.is_empty(), "{line}: {stderr}");
    String::from_utf8(output.stdout).expect("answers are text")
}

/// The JSON of a command line, which must have exactly these keys, in this order.
pub(crate) fn json(line: &str, keys: &[&str]) -> Value {
    let text = printed(&format!("{line} --json"));
    let value: Value = serde_json::from_str(&text).expect("the answer is JSON");
    assert_keys(&value, keys, line);
    let positions = keys.iter().map(|key| text.find(&format!("\"{key}\"")));
    assert!(positions.is_sorted(), "{line}: {text}");
    value
}

/// That an object has exactly these keys.
pub(crate) fn assert_keys(value: &Value, keys: &[&str], what: &str) {
    let mut found: Vec<&str> =
        value.as_object().expect("an object").keys().map(String::as_str).collect();
    let mut wanted = keys.to_vec();
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted, "{what}");
}

/// A number at a path such as `host/overall`.
pub(crate) fn number(value: &Value, path: &str) -> f64 {
    value.pointer(&format!("/{path}")).and_then(Value::as_f64).expect("a number")
}

/// That a number is what it should be.
pub(crate) fn assert_near(value: &Value, path: &str, wanted: f64, tolerance: f64) {
    let found = number(value, path);
    assert!((found - wanted).abs() <= tolerance, "{path}: {found} against {wanted}");
}
