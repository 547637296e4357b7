// Shows the rows of an answer. Only the visible rows and columns, and a few beside them, are in the document, so that
// 10,000 rows or 1,600 columns scroll as fast as ten. Arrow keys move to another cell. Enter opens the cell, and
// Shift+Space selects its row. The copy shortcut copies the selected row, or else the current cell.
import { useVirtualizer, type VirtualItem } from '@tanstack/react-virtual'
import { memo, useId, useMemo, useRef, useState, type KeyboardEvent } from 'react'
import { Download } from 'lucide-react'
import { isMac } from '../../frame/keyboard-shortcuts.ts'
import { classes } from '../../parts/class-names.ts'
import { copyText, CopyButton } from '../../parts/Copy.tsx'
import { Button } from '../../parts/Button.tsx'
import { Dialog } from '../../parts/Dialog.tsx'
import { saveFile } from '../../parts/save-file.ts'
import { say } from '../../parts/StatusMessages.tsx'
import { number } from '../../parts/format.ts'
import { isMissing, isNumeric, openedOf, shownOf, textOf, tsvOf } from './cell-text.ts'

interface Column {
  readonly name: string
  readonly dataType: string
}

interface ResultTableProps {
  readonly columns: readonly Column[]
  readonly rows: readonly (readonly unknown[])[]
}

interface Cell {
  readonly row: number
  readonly column: number
}

const ROW = 32
const HEAD = 44
const PADDING = 24
/** The width of a character of the grid's font, in pixels. */
const CHARACTER = 7.4
/** In pixels. */
const [NARROWEST, WIDEST] = [72, 380]
/** The number of rows that determine the column widths. */
const SAMPLE = 40
/** The maximum number of characters of an opened value that are shown. */
const OPENED_MAX = 50_000

export function ResultTable({ columns, rows }: ResultTableProps) {
  const place = useRef<HTMLDivElement>(null)
  const id = useId()
  const [at, setAt] = useState<Cell>({ row: 0, column: 0 })
  const [marked, setMarked] = useState<number | null>(null)
  const [opened, open] = useState<Cell | null>(null)
  const widths = useMemo(() => columns.map((column, n) => widthOf(column, n, rows)), [columns, rows])
  const getScrollElement = () => place.current
  const down = useVirtualizer({
    count: rows.length,
    getScrollElement,
    estimateSize: () => ROW,
    overscan: 4,
    useFlushSync: false,
    paddingStart: HEAD,
    scrollPaddingStart: HEAD,
  })
  const across = useVirtualizer({
    horizontal: true,
    count: columns.length,
    getScrollElement,
    estimateSize: (n) => widths[n] ?? NARROWEST,
    overscan: 2,
    useFlushSync: false,
  })
  const go = (row: number, column: number) => {
    const next = { row: clamp(row, rows.length), column: clamp(column, columns.length) }
    setAt(next)
    down.scrollToIndex(next.row)
    across.scrollToIndex(next.column)
  }
  const page = Math.max(1, Math.floor((place.current?.clientHeight ?? 400) / ROW) - 2)
  const onKeyDown = (event: KeyboardEvent) => {
    const move = moveOf(event, at, { page, lastRow: rows.length - 1, lastColumn: columns.length - 1 })
    if (move !== null) go(move.row, move.column)
    else if (event.key === 'Enter') open(at)
    else if (event.key === ' ' && event.shiftKey) setMarked(marked === at.row ? null : at.row)
    else if (event.key === 'c' && (isMac ? event.metaKey : event.ctrlKey)) {
      const text = marked === null ? textOf(rows[at.row]?.[at.column]) : tsvOf(rows[marked] ?? [])
      void copyText(text).then((copied) => copied && say(marked === null ? 'Cell copied' : 'Row copied'))
    } else return
    event.preventDefault()
  }
  const cells = across.getVirtualItems()
  const shown = down.getVirtualItems()
  // The DOM elements of rows that leave the view are reused for rows that enter the view.
  const slots = useRef(1)
  slots.current = Math.max(slots.current, shown.length)
  const numbers = useMemo(() => columns.map(isNumeric), [columns])
  const isRendered = shown.some(({ index }) => index === at.row) && cells.some(({ index }) => index === at.column)
  const cellUnder = (target: EventTarget): Cell | null => {
    const cell = target instanceof Element ? target.closest('[role=gridcell]') : null
    const [row, column] = [cell?.parentElement?.ariaRowIndex, cell?.ariaColIndex].map(Number)
    return row === undefined || column === undefined || Number.isNaN(row) ? null : { row: row - 2, column: column - 1 }
  }
  return (
    <>
      <div
        ref={place}
        className="grid"
        role="grid"
        aria-label="Result"
        aria-rowcount={rows.length + 1}
        aria-colcount={columns.length}
        aria-activedescendant={isRendered ? `${id}-at` : undefined}
        tabIndex={0}
        // The height includes the borders and a scrollbar.
        style={{ '--all': `${down.getTotalSize() + 18}px` }}
        onKeyDown={onKeyDown}
      >
        <div role="rowgroup" className="grid-head" style={{ width: across.getTotalSize() }}>
          <div role="row" aria-rowindex={1}>
            {cells.map(({ index, start, size }) => (
              <div
                key={index}
                role="columnheader"
                aria-colindex={index + 1}
                className={classes('grid-cell', numbers[index] === true && 'number')}
                style={{ left: start, width: size }}
              >
                <bdi className="cut">{columns[index]?.name ?? ''}</bdi>
                <small className="cut">{columns[index]?.dataType ?? ''}</small>
              </div>
            ))}
          </div>
        </div>
        <div
          role="rowgroup"
          className="grid-body"
          style={{ height: down.getTotalSize() - HEAD, width: across.getTotalSize() }}
          onClick={({ target }) => {
            const cell = cellUnder(target)
            if (cell !== null) setAt(cell)
          }}
          onDoubleClick={({ target }) => open(cellUnder(target))}
        >
          {shown.map(({ index, start }) => (
            <GridRow
              key={index % slots.current}
              index={index}
              top={start - HEAD}
              values={rows[index] ?? NO_VALUES}
              cells={cells}
              numbers={numbers}
              atId={`${id}-at`}
              at={index === at.row ? at.column : null}
              isMarked={marked === index}
            />
          ))}
        </div>
      </div>
      <OpenedCell columns={columns} rows={rows} cell={opened} onClose={() => open(null)} />
    </>
  )
}

const NO_VALUES: readonly unknown[] = []

interface GridRowProps {
  readonly index: number
  readonly top: number
  readonly values: readonly unknown[]
  readonly cells: readonly VirtualItem[]
  readonly numbers: readonly boolean[]
  readonly atId: string
  /** The column of the current cell, if it is in this row. */
  readonly at: number | null
  readonly isMarked: boolean
}

const GridRow = memo(function GridRow({ index, top, values, cells, numbers, atId, at, isMarked }: GridRowProps) {
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      aria-selected={isMarked}
      className="grid-row"
      style={{ transform: `translateY(${top}px)` }}
    >
      {cells.map(({ index: column, start, size }) => {
        const value = values[column]
        const isAt = column === at
        return (
          // A cell contains text from a database, whose text direction must not affect the page.
          <bdi
            key={column}
            id={isAt ? atId : undefined}
            role="gridcell"
            aria-colindex={column + 1}
            className={classes(
              'grid-cell cut',
              isAt && 'at',
              isMissing(value) && 'missing',
              numbers[column] === true && 'number',
            )}
            style={{ left: start, width: size }}
          >
            {shownOf(value)}
          </bdi>
        )
      })}
    </div>
  )
})

function OpenedCell({
  columns,
  rows,
  cell,
  onClose,
}: ResultTableProps & { readonly cell: Cell | null; readonly onClose: () => void }) {
  const column = cell === null ? undefined : columns[cell.column]
  const value = cell === null ? null : rows[cell.row]?.[cell.column]
  // Memoized, because an open value is rendered again with each key press.
  const text = useMemo(() => openedOf(value), [value])
  const isCut = text.length > OPENED_MAX
  return (
    <Dialog
      open={cell !== null}
      onClose={onClose}
      wide
      title={<bdi>{column?.name ?? ''}</bdi>}
      description={cell === null ? '' : `${column?.dataType ?? ''}, row ${cell.row + 1}`}
      foot={
        <>
          {isCut && (
            <Button icon={Download} onClick={() => saveFile(`${column?.name ?? 'value'}.txt`, text)}>
              Download value
            </Button>
          )}
          <CopyButton text={text}>Copy value</CopyButton>
        </>
      }
    >
      <pre className="cell-text" tabIndex={0} role="group" aria-label="Value">
        <bdi>{isCut ? text.slice(0, OPENED_MAX) : text}</bdi>
      </pre>
      {isCut && (
        <p className="tiny">
          The first {number(OPENED_MAX)} of {number(text.length)} characters. The copy and the file have all of them.
        </p>
      )}
    </Dialog>
  )
}

interface Bounds {
  readonly page: number
  readonly lastRow: number
  readonly lastColumn: number
}

/** Returns the cell to which a key moves, or null for any other key. */
function moveOf(event: KeyboardEvent, { row, column }: Cell, { page, lastRow, lastColumn }: Bounds): Cell | null {
  const whole = event.ctrlKey || event.metaKey
  switch (event.key) {
    case 'ArrowDown':
      return { row: whole ? lastRow : row + 1, column }
    case 'ArrowUp':
      return { row: whole ? 0 : row - 1, column }
    case 'ArrowRight':
      return { row, column: whole ? lastColumn : column + 1 }
    case 'ArrowLeft':
      return { row, column: whole ? 0 : column - 1 }
    case 'PageDown':
      return { row: row + page, column }
    case 'PageUp':
      return { row: row - page, column }
    case 'Home':
      return { row: whole ? 0 : row, column: 0 }
    case 'End':
      return { row: whole ? lastRow : row, column: lastColumn }
    default:
      return null
  }
}

const clamp = (n: number, count: number) => Math.max(0, Math.min(count - 1, n))

function widthOf(column: Column, n: number, rows: ResultTableProps['rows']): number {
  const texts = rows.slice(0, SAMPLE).map((row) => shownOf(row[n]).length)
  const widest = Math.max(column.name.length, column.dataType.length * 0.9, ...texts)
  return Math.round(Math.max(NARROWEST, Math.min(WIDEST, widest * CHARACTER + PADDING)))
}
