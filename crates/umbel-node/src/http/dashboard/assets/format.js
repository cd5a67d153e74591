// Numbers as people read them.

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** A whole number: 12,345, 1.2 M. */
export function count(n) {
  if (n === null || n === undefined) return "–";
  if (Math.abs(n) >= 1e9) return `${(n / 1e9).toPrecision(3)} G`;
  if (Math.abs(n) >= 1e7) return `${(n / 1e6).toPrecision(3)} M`;
  return grouped.format(n);
}

/** Three digits, without trailing noise. */
export function number(n) {
  if (n === null || n === undefined || Number.isNaN(n)) return "–";
  if (n === 0) return "0";
  const size = Math.abs(n);
  if (size >= 1e6 || size < 1e-3) return n.toExponential(1).replace("e+", "e");
  if (size >= 100) return grouped.format(n);
  return String(Number(n.toPrecision(3)));
}

/** A share of one: 0.012 is 1.2 %. */
export function percent(rate) {
  if (rate === null || rate === undefined || Number.isNaN(rate)) return "–";
  if (rate === 0) return "0 %";
  const p = 100 * rate;
  if (p >= 10) return `${p.toFixed(0)} %`;
  if (p >= 0.001) return `${Number(p.toPrecision(2))} %`;
  return `${p.toExponential(0).replace("e-", "e−")} %`;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(n) {
  if (n === null || n === undefined || Number.isNaN(n)) return "–";
  let unit = 0;
  while (Math.abs(n) >= 1024 && unit < UNITS.length - 1) {
    n /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(n) : Number(n.toPrecision(3))} ${UNITS[unit]}`;
}

export function seconds(n) {
  if (n === null || n === undefined) return "–";
  if (n < 0.001) return `${(n * 1e6).toFixed(0)} µs`;
  if (n < 1) return `${Number((n * 1000).toPrecision(2))} ms`;
  if (n < 100) return `${Number(n.toPrecision(2))} s`;
  if (n < 5400) return `${Math.round(n / 60)} min`;
  if (n < 172800) return `${Math.round(n / 3600)} h`;
  return `${Math.round(n / 86400)} days`;
}

export const milliseconds = (n) => `${n < 10 ? Number(n.toPrecision(2)) : Math.round(n)} ms`;

export const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : (many ?? `${one}s`)}`;

const collator = new Intl.Collator("en", { numeric: true });
/** The order of names: host-2 before host-10. */
export const inOrder = (one, other) => (one === other ? 0 : collator.compare(one, other));

/** How many times as much, where that can be said. */
export function times(more, less) {
  if (!(less > 0) || !(more >= 0)) return null;
  return `${number(more / less)}×`;
}
