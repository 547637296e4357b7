// The filters of the tree: search words, and one of six views.
import type { ReactNode } from 'react'
import { classes } from '../../../parts/class-names.ts'
import { number } from '../../../parts/format.ts'
import { SHOW, type Filter, type Show } from './visible-rows.ts'

interface FiltersProps {
  readonly filter: Filter
  readonly counts: Readonly<Partial<Record<Show, number>>>
  readonly onChange: (filter: Filter) => void
  readonly end: ReactNode
}

const LABELS: Readonly<Record<Show, string>> = {
  all: 'All',
  exposed: 'Exposed',
  hidden: 'Hidden',
  new: 'New',
  personal: 'Looks personal',
  wanted: 'Wanted',
}

export function Filters({ filter, counts, onChange, end }: FiltersProps) {
  return (
    <div className="tree-filters">
      <input
        type="search"
        className="input"
        data-filter
        aria-label="Filter tables and columns"
        placeholder="Filter tables and columns"
        autoComplete="off"
        spellCheck={false}
        value={filter.text}
        onChange={(event) => onChange({ ...filter, text: event.target.value })}
      />
      <div className="segments" role="group" aria-label="Show">
        {SHOW.map((show) => (
          <button
            key={show}
            type="button"
            className={classes('segment', counts[show] === 0 && 'none')}
            aria-pressed={filter.show === show}
            onClick={() => onChange({ ...filter, show })}
          >
            {LABELS[show]}
            {(counts[show] ?? 0) > 0 && (
              <span className="segment-count" aria-hidden>
                {number(counts[show] ?? 0)}
              </span>
            )}
          </button>
        ))}
      </div>
      {end}
    </div>
  )
}
