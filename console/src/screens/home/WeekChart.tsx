// Shows the answered, failed and refused queries per day as bars. A table contains the same numbers for people who
// cannot see the bars.
import type { Usage } from '../../api/types.ts'

type Day = Usage['days'][number]

const DAY_MS = 86_400_000
const WEEKDAY = new Intl.DateTimeFormat('en-GB', { weekday: 'short', timeZone: 'UTC' })

/** Returns the last `count` days up to today, in UTC, including days without a query. */
function filled(days: readonly Day[], count: number): readonly Day[] {
  const known = new Map(days.map((day) => [day.date, day]))
  return Array.from({ length: count }, (_, n) => {
    const date = new Date(Date.now() - (count - 1 - n) * DAY_MS).toISOString().slice(0, 10)
    return known.get(date) ?? { date, queries: 0, denied: 0, failed: 0, rows: 0 }
  })
}

export function WeekChart({ days, count }: { readonly days: readonly Day[]; readonly count: number }) {
  const all = filled(days, count)
  const most = Math.max(1, ...all.map(({ queries }) => queries))
  const part = (value: number) => `${(value / most) * 100}%`
  return (
    <figure className="week">
      <div className="week-bars" aria-hidden>
        {all.map(({ date, queries, denied, failed }) => (
          <div key={date} className="week-day" title={`${date}: ${queries} questions, ${denied} refused`}>
            <div className="week-bar">
              <span className="bad" style={{ height: part(denied) }} />
              <span className="warn" style={{ height: part(failed) }} />
              <span className="ok" style={{ height: part(queries - denied - failed) }} />
            </div>
            <span className="tiny">{WEEKDAY.format(new Date(date))}</span>
          </div>
        ))}
      </div>
      <figcaption className="legend" aria-hidden>
        <span className="ok">Answered</span>
        <span className="bad">Refused</span>
        <span className="warn">Failed</span>
      </figcaption>
      <div className="hidden-words">
        <table>
          <caption>Questions per day</caption>
          <thead>
            <tr>
              <th scope="col">Day</th>
              <th scope="col">Questions</th>
              <th scope="col">Refused</th>
              <th scope="col">Failed</th>
            </tr>
          </thead>
          <tbody>
            {all.map(({ date, queries, denied, failed }) => (
              <tr key={date}>
                <th scope="row">{date}</th>
                <td>{queries}</td>
                <td>{denied}</td>
                <td>{failed}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  )
}
