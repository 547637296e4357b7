// Counters, and histograms of durations, for the metrics that http/metrics-endpoint.ts serves. Labels come from fixed
// sets. They never contain a caller's text, or the id or name of a person, team or datasource.

/** In seconds. */
const BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const

export class Durations {
  /** One count for each bucket, and one for longer durations. */
  readonly #counts: number[] = [...BOUNDS, Infinity].map(() => 0)
  #ms = 0

  add(ms: number): void {
    let at = 0
    while (at < BOUNDS.length && ms > (BOUNDS[at] ?? 0) * 1000) at++
    this.#counts[at] = (this.#counts[at] ?? 0) + 1
    this.#ms += ms
  }

  get seconds(): number {
    return this.#ms / 1000
  }

  /** Returns the bound of each bucket, and how many durations were not longer. */
  cumulative(): readonly (readonly [bound: number, count: number])[] {
    let total = 0
    return this.#counts.map((count, n) => [BOUNDS[n] ?? Infinity, (total += count)])
  }
}

type Labels = Readonly<Record<string, string>>

/** A metric. `samples` is called when a collector asks for it. */
export interface Family {
  readonly name: string
  readonly type: 'gauge' | 'counter' | 'histogram'
  readonly help: string
  readonly samples: () => Iterable<readonly [Labels, number | Durations]>
}

/** Each combination of labels takes memory, so there must be few combinations. */
export class Counts<L extends Labels> {
  readonly #counts = new Map<string, { readonly labels: L; count: number }>()

  add(labels: L): void {
    const key = Object.values(labels).join(' ')
    const known = this.#counts.get(key)
    if (known === undefined) this.#counts.set(key, { labels, count: 1 })
    else known.count++
  }

  *samples(): Iterable<readonly [L, number]> {
    for (const { labels, count } of this.#counts.values()) yield [labels, count]
  }
}
