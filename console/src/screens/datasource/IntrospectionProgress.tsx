import { sentenceOf } from '../../api/failure.ts'
import { Notice } from '../../parts/Notice.tsx'
import { number } from '../../parts/format.ts'
import { LookEnded, type Look } from './introspect.ts'

export function IntrospectionProgress({ look }: { readonly look: Pick<Look, 'busy' | 'progress' | 'error'> }) {
  const { busy, progress, error } = look
  if (busy) {
    const isKnown = progress !== null && progress.total > 0
    return (
      <div className="looking">
        <div
          className="look-meter"
          role="progressbar"
          aria-label="Reading tables"
          aria-valuemin={0}
          aria-valuemax={isKnown ? progress.total : undefined}
          aria-valuenow={isKnown ? progress.done : undefined}
        >
          <span style={{ width: isKnown ? `${(100 * progress.done) / progress.total}%` : undefined }} />
        </div>
        <p className="tiny" role="status">
          Reading tables{isKnown && `, ${number(progress.done)} of ${number(progress.total)}`}
          {progress !== null && progress.step !== null && (
            <>
              : <bdi>{progress.step}</bdi>
            </>
          )}
        </p>
      </div>
    )
  }
  if (error === null || error === undefined) return null
  return <Notice tone="bad">{error instanceof LookEnded ? error.message : sentenceOf(error)}</Notice>
}
