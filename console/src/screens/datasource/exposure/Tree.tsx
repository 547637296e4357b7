// The tree of schemas, tables and columns. Only the visible rows, and a few above and below, are in the document. The
// tree has the focus, and aria-activedescendant names the active row.
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent } from 'react'
import { useRowHeight } from './row-height.ts'
import type { Choice } from './choice.ts'
import { nameOf, type Added, type Row } from './visible-rows.ts'
import { TreeRow } from './TreeRow.tsx'

interface TreeProps {
  readonly rows: readonly Row[]
  readonly choice: Choice
  readonly added: Added
  readonly onFlip: (rows: readonly Row[]) => void
  /** Ticks all of these rows. If the first row is ticked, unticks all of them. */
  readonly onTick: (rows: readonly Row[]) => void
}

const OVERSCAN = 8
/** The maximum pause between two letters of one search word. */
const WORD_MS = 700

export function Tree({ rows, choice, added, onFlip, onTick }: TreeProps) {
  const id = useId()
  const height = useRowHeight()
  const place = useRef<HTMLDivElement>(null)
  const [activeId, setActiveId] = useState<string | null>(null)
  const [anchor, setAnchor] = useState<number | null>(null)
  const active = useMemo(
    () =>
      Math.max(
        0,
        rows.findIndex((row) => row.id === activeId),
      ),
    [rows, activeId],
  )
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => place.current,
    estimateSize: () => height,
    overscan: OVERSCAN,
  })
  useEffect(() => virtual.measure(), [virtual, height])
  const go = (to: number, extend = false) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, to))]
    if (row === undefined) return
    setAnchor(extend ? (anchor ?? active) : null)
    setActiveId(row.id)
    virtual.scrollToIndex(rows.indexOf(row))
  }
  const range = anchor === null ? [active, active] : [Math.min(anchor, active), Math.max(anchor, active)]
  const [from = 0, to = 0] = range
  const typed = useTyped()
  const onKeyDown = (event: KeyboardEvent) => {
    const row = rows[active]
    if (row === undefined || event.ctrlKey || event.metaKey || event.altKey) return
    if (!handled()) return
    event.preventDefault()
    event.stopPropagation()

    function handled(): boolean {
      if (row === undefined) return false
      const perPage = Math.max(1, Math.floor((place.current?.clientHeight ?? 0) / height) - 1)
      switch (event.key) {
        case 'ArrowDown':
          go(active + 1, event.shiftKey)
          return true
        case 'ArrowUp':
          go(active - 1, event.shiftKey)
          return true
        case 'PageDown':
          go(active + perPage, event.shiftKey)
          return true
        case 'PageUp':
          go(active - perPage, event.shiftKey)
          return true
        case 'Home':
          go(0)
          return true
        case 'End':
          go(rows.length - 1)
          return true
        case 'ArrowRight':
          if (row.kind === 'column') return true
          if (row.isOpen) go(active + 1)
          else onFlip([row])
          return true
        case 'ArrowLeft':
          if (row.kind !== 'column' && row.isOpen) onFlip([row])
          else go(parentOf(rows, active))
          return true
        case '*':
          onFlip(rows.filter((each) => each.kind === row.kind && each.kind !== 'column' && !each.isOpen))
          return true
        case ' ':
          onTick(rows.slice(from, to + 1))
          return true
        case 'Enter':
          if (row.kind === 'column') onTick([row])
          else onFlip([row])
          return true
        default:
          return jump(event)
      }
    }
  }
  const jump = (event: KeyboardEvent): boolean => {
    // The page itself handles "/" and "?".
    if (event.key.length !== 1 || /[/?]/.test(event.key)) return false
    const word = typed(event.key.toLowerCase())
    const first = word.length === 1 ? 1 : 0
    for (let n = first; n < rows.length + first; n++) {
      const at = (active + n) % rows.length
      const row = rows[at]
      if (row !== undefined && nameOf(row).toLowerCase().startsWith(word)) {
        go(at)
        break
      }
    }
    return true
  }
  const items = virtual.getVirtualItems()
  const isRendered = items.some(({ index }) => index === active)
  return (
    <div
      ref={place}
      className="tree"
      role="tree"
      aria-label="Tables and columns"
      aria-activedescendant={isRendered && rows.length > 0 ? `${id}-${active}` : undefined}
      tabIndex={0}
      // The height includes the borders.
      style={{ '--all': `${virtual.getTotalSize() + 2}px` }}
      onKeyDown={onKeyDown}
    >
      <div role="presentation" className="tree-all" style={{ height: virtual.getTotalSize() }}>
        {items.map(({ index, start, size }) => {
          const row = rows[index]
          return (
            row !== undefined && (
              <TreeRow
                key={row.id}
                id={`${id}-${index}`}
                row={row}
                choice={choice}
                added={added}
                start={start}
                size={size}
                isActive={index === active}
                isInRange={anchor !== null && index >= from && index <= to}
                onActive={() => {
                  setActiveId(row.id)
                  setAnchor(null)
                }}
                onFlip={() => onFlip([row])}
                onTick={() => onTick([row])}
              />
            )
          )
        })}
      </div>
    </div>
  )
}

function parentOf(rows: readonly Row[], at: number): number {
  const level = rows[at]?.level ?? 1
  for (let n = at - 1; n >= 0; n--) if ((rows[n]?.level ?? 1) < level) return n
  return at
}

/** Returns a function that combines letters that are typed quickly. */
function useTyped(): (letter: string) => string {
  const last = useRef({ word: '', at: 0 })
  return (letter) => {
    const now = performance.now()
    const { word, at } = last.current
    const next = now - at < WORD_MS && word !== letter ? word + letter : letter
    last.current = { word: next, at: now }
    return next
  }
}
