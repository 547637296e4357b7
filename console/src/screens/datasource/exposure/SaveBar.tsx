// The bar of unsaved changes: their number, their impact, and the buttons to review or discard them.
import { useEffect } from 'react'
import { isMac, MOD } from '../../../frame/keyboard-shortcuts.ts'
import { Button } from '../../../parts/Button.tsx'
import { counted } from '../../../parts/format.ts'
import { columnCount, type Difference } from './choice.ts'
import { ImpactLine } from './Impact.tsx'
import type { ImpactState } from './usePreview.ts'

interface SaveBarProps {
  readonly difference: Difference
  readonly impact: ImpactState | null
  readonly onDiscard: () => void
  readonly onReview: () => void
}

export function SaveBar({ difference, impact, onDiscard, onReview }: SaveBarProps) {
  const [added, removed] = [columnCount(difference.added), columnCount(difference.removed)]
  const words = [
    added > 0 && `${counted(added, 'column')} added`,
    removed > 0 && `${counted(removed, 'column')} removed`,
  ]
  useSaveKey(onReview)
  return (
    <section className="save-bar" aria-label="Unsaved changes">
      <p>
        <strong>{words.filter(Boolean).join(', ')}</strong> <ImpactLine is={impact} />
      </p>
      <div className="row">
        <Button onClick={onDiscard}>Discard</Button>
        <Button look="primary" onClick={onReview} aria-keyshortcuts="Control+S Meta+S" title={`${MOD} S`}>
          Review changes
        </Button>
      </div>
    </section>
  )
}

/** Ctrl+S, or ⌘S on a Mac, does the same as the button "Review changes". */
function useSaveKey(onReview: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 's' || event.shiftKey || event.altKey) return
      if (isMac ? !event.metaKey : !event.ctrlKey) return
      event.preventDefault()
      onReview()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [onReview])
}
