// A time, shown relative to now.
import { ago, exact } from './format.ts'

export function Time({ at }: { readonly at: string }) {
  return (
    <time dateTime={at} title={exact(at)}>
      {ago(at)}
    </time>
  )
}
