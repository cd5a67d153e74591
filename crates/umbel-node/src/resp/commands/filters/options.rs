//! The options of `RESERVE` and `INSERT`, with RedisBloom's ranges and error texts.

use std::ops::RangeInclusive;

use crate::filter_kind::{Bloom, Cuckoo};
use crate::resp::error_line::ErrorLine;
use crate::resp::request::Arguments;

const CAPACITY: RangeInclusive<i64> = 1..=1 << 30;
const EXPANSION: RangeInclusive<i64> = 0..=32_768;
const BUCKET_SIZE: RangeInclusive<i64> = 1..=255;
const MAX_ITERATIONS: RangeInclusive<i64> = 1..=65_535;

const RATE_RANGE: &str = "ERR error rate must be in the range (0.000000, 1.000000)";
const CAPACITY_RANGE: &str = "ERR capacity must be in the range [1, 1073741824]";
const EXPANSION_RANGE: &str = "ERR expansion must be in the range [0, 32768]";
const CUCKOO_CAPACITY_RANGE: &str = "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]";
const INSERT_CAPACITY_RANGE: &str =
    "Capacity must be in the range [cf-bucket-size * 2, 1073741824]";
const CANNOT_EXPAND: &str = "Nonscaling filters cannot expand";
const UNKNOWN: &str = "Unknown argument received";

/// The Bloom filter that `BF.RESERVE` requests.
pub(super) fn reserve_bloom(arguments: &Arguments<'_, '_>) -> Result<Bloom, ErrorLine> {
    let argument = |index| arguments.get(index).unwrap_or_default();
    let mut bloom = Bloom {
        error_rate: rate(argument(2), "ERR bad error rate", RATE_RANGE)?,
        capacity: whole(argument(3), CAPACITY, "ERR bad capacity", CAPACITY_RANGE)?,
        ..Bloom::default()
    };
    let mut scaling = Scaling::default();
    let mut words = arguments.from(4);
    while let Some(word) = words.next() {
        match &*upper(word) {
            "EXPANSION" => {
                let value = words.next().ok_or("ERR no expansion")?;
                scaling.expand(value, "ERR bad expansion", EXPANSION_RANGE)?;
            }
            "NONSCALING" => scaling.is_off = true,
            _ => return Err(UNKNOWN.into()),
        }
    }
    if scaling.is_off && scaling.expansion.is_some_and(|expansion| expansion > 0) {
        return Err(CANNOT_EXPAND.into());
    }
    bloom.expansion = scaling.of(bloom.expansion);
    Ok(bloom)
}

/// The options of an `INSERT`, and where its items begin.
#[derive(Debug)]
pub(super) struct Insert<T> {
    /// The filter to create if there is none of that name; `None`: do not create one.
    pub(super) create: Option<T>,
    /// Index of the first item.
    pub(super) items: usize,
}

/// Parses `BF.INSERT`; `None`: the number of arguments is wrong.
pub(super) fn insert_bloom(
    arguments: &Arguments<'_, '_>,
) -> Result<Option<Insert<Bloom>>, ErrorLine> {
    let (mut bloom, mut scaling, mut creates) = (Bloom::default(), Scaling::default(), true);
    let mut at = 2;
    while let Some(word) = arguments.get(at) {
        let word = upper(word);
        at += 1;
        if word == "ITEMS" {
            bloom.expansion = scaling.of(bloom.expansion);
            return Ok(items(arguments, at, creates.then_some(bloom)));
        }
        if ["NOCREATE", "NONSCALING"].contains(&&*word) {
            creates &= word != "NOCREATE";
            scaling.is_off |= word == "NONSCALING";
            continue;
        }
        if !["CAPACITY", "ERROR", "EXPANSION"].contains(&&*word) {
            return Err(UNKNOWN.into());
        }
        let Some(value) = arguments.get(at) else { return Ok(None) };
        at += 1;
        match &*word {
            "CAPACITY" => {
                bloom.capacity = whole(value, CAPACITY, "Bad capacity", "Bad capacity")?;
            }
            "ERROR" => bloom.error_rate = rate(value, "Bad error rate", "Bad error rate")?,
            _ => scaling.expand(value, "Bad expansion", "Bad expansion")?,
        }
    }
    Ok(None)
}

/// The cuckoo filter that `CF.RESERVE` requests; `None`: the number of arguments is wrong.
pub(super) fn reserve_cuckoo(arguments: &Arguments<'_, '_>) -> Result<Option<Cuckoo>, ErrorLine> {
    let mut cuckoo = Cuckoo::default();
    let capacity = arguments.get(2).unwrap_or_default();
    let capacity = whole_number(capacity).ok_or("Bad capacity")?;
    let mut words = arguments.from(3);
    while let Some(word) = words.next() {
        let Some(value) = words.next() else { return Ok(None) };
        match &*upper(word) {
            "BUCKETSIZE" => cuckoo.bucket_size = option(value, BUCKET_SIZE, "BUCKETSIZE")?,
            "MAXITERATIONS" => {
                cuckoo.max_iterations = option(value, MAX_ITERATIONS, "MAXITERATIONS")?;
            }
            "EXPANSION" => {
                cuckoo = cuckoo.with_expansion(option(value, EXPANSION, "EXPANSION")?);
            }
            _ => return Err(UNKNOWN.into()),
        }
    }
    let min = 2 * i64::from(cuckoo.bucket_size);
    if !(min..=*CAPACITY.end()).contains(&capacity) {
        return Err(CUCKOO_CAPACITY_RANGE.into());
    }
    Ok(Some(Cuckoo { capacity: capacity.unsigned_abs(), ..cuckoo }))
}

/// Parses `CF.INSERT` and `CF.INSERTNX`; `None`: the number of arguments is wrong.
pub(super) fn insert_cuckoo(
    arguments: &Arguments<'_, '_>,
) -> Result<Option<Insert<Cuckoo>>, ErrorLine> {
    let (mut cuckoo, mut creates) = (Cuckoo::default(), true);
    let range = 2 * i64::from(cuckoo.bucket_size)..=*CAPACITY.end();
    let mut at = 2;
    while let Some(word) = arguments.get(at) {
        at += 1;
        match &*upper(word) {
            "ITEMS" => return Ok(items(arguments, at, creates.then_some(cuckoo))),
            "NOCREATE" => creates = false,
            "CAPACITY" => {
                let Some(value) = arguments.get(at) else { return Ok(None) };
                at += 1;
                let range = range.clone();
                cuckoo.capacity = whole(value, range, "Bad capacity", INSERT_CAPACITY_RANGE)?;
            }
            _ => return Err(UNKNOWN.into()),
        }
    }
    Ok(None)
}

/// The options about scaling.
#[derive(Debug, Default)]
struct Scaling {
    expansion: Option<u32>,
    is_off: bool,
}

impl Scaling {
    fn expand(
        &mut self,
        value: &[u8],
        unreadable: &'static str,
        outside: &'static str,
    ) -> Result<(), ErrorLine> {
        let expansion = whole(value, EXPANSION, unreadable, outside)?;
        self.expansion = Some(expansion as u32);
        Ok(())
    }

    /// The expansion of a filter, or `None` if it does not scale: an expansion of 0 or `NONSCALING`
    /// turns scaling off.
    fn of(&self, default: Option<u32>) -> Option<u32> {
        match self.expansion {
            _ if self.is_off => None,
            Some(0) => None,
            Some(expansion) => Some(expansion),
            None => default,
        }
    }
}

/// The insert, if there is at least one item.
fn items<T>(arguments: &Arguments<'_, '_>, at: usize, create: Option<T>) -> Option<Insert<T>> {
    (at < arguments.len()).then_some(Insert { create, items: at })
}

fn option(value: &[u8], range: RangeInclusive<i64>, name: &str) -> Result<u32, ErrorLine> {
    let number = whole_number(value).ok_or_else(|| format!("Couldn't parse {name}"))?;
    let (min, max) = range.clone().into_inner();
    match range.contains(&number) {
        true => Ok(number as u32),
        false => Err(format!("{name}: value must be in the range [{min}, {max}]").into()),
    }
}

fn whole(
    value: &[u8],
    range: RangeInclusive<i64>,
    unreadable: &'static str,
    outside: &'static str,
) -> Result<u64, ErrorLine> {
    let number = whole_number(value).ok_or(unreadable)?;
    match range.contains(&number) {
        true => Ok(number.unsigned_abs()),
        false => Err(outside.into()),
    }
}

/// A number as Redis parses it: digits, perhaps after a minus, in the shortest form.
pub(super) fn whole_number(value: &[u8]) -> Option<i64> {
    let text = str::from_utf8(value).ok()?;
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn rate(value: &[u8], unreadable: &'static str, outside: &'static str) -> Result<f64, ErrorLine> {
    let number = str::from_utf8(value).ok().and_then(|text| text.parse::<f64>().ok());
    let number = number.filter(|number| !number.is_nan()).ok_or(unreadable)?;
    match number > 0.0 && number < 1.0 {
        true => Ok(number),
        false => Err(outside.into()),
    }
}

/// A word in upper case, cut to a maximum length.
fn upper(word: &[u8]) -> String {
    super::super::excerpt(word).to_ascii_uppercase()
}
