// One row of the tree: the open/close button, the checkbox, name and type. It also shows facts that help to choose: the
// reason why a column looks personal, the number of refusals, and the time of the last read.
import { ChevronRight, EyeOff, KeyRound, X } from 'lucide-react'
import type { MouseEvent, ReactNode } from 'react'
import { classes } from '../../../parts/class-names.ts'
import { Icon } from '../../../parts/Icon.tsx'
import { Tag } from '../../../parts/Tag.tsx'
import { ago, counted, number } from '../../../parts/format.ts'
import type { Choice } from './choice.ts'
import { canBeTicked, checkedOf, shownIn, type Checked } from './catalog-tree.ts'
import {
  isAdded,
  partsOf,
  type Added,
  type ColumnRow,
  type Row,
  type SchemaRow,
  type TableRow,
} from './visible-rows.ts'

interface RowProps {
  readonly id: string
  readonly row: Row
  readonly choice: Choice
  readonly added: Added
  readonly start: number
  readonly size: number
  readonly isActive: boolean
  readonly isInRange: boolean
  readonly onActive: () => void
  readonly onFlip: () => void
  readonly onTick: () => void
}

export function TreeRow({ id, row, choice, added, start, size, isActive, isInRange, ...does }: RowProps) {
  const parts = partsOf(row)
  const checked = checkedOf(parts, choice)
  const isTickable = canBeTicked(parts)
  const isOpen = row.kind === 'column' ? undefined : row.isOpen
  const tick = (event: MouseEvent) => {
    event.stopPropagation()
    does.onActive()
    does.onTick()
  }
  const press = () => {
    does.onActive()
    if (row.kind === 'column') does.onTick()
    else does.onFlip()
  }
  return (
    <div
      id={id}
      role="treeitem"
      className={classes('tree-row', row.kind, isActive && 'active', isInRange && 'ranged')}
      aria-level={row.level}
      aria-posinset={row.place}
      aria-setsize={row.siblings}
      aria-expanded={isOpen}
      aria-checked={isTickable ? checked : 'false'}
      aria-disabled={isTickable ? undefined : true}
      style={{ transform: `translateY(${start}px)`, height: size, '--depth': depthOf(row) }}
      onClick={press}
    >
      <span className="twisty" aria-hidden>
        {isOpen !== undefined && <Icon of={ChevronRight} />}
      </span>
      <span className="tree-box-place" aria-hidden onClick={tick}>
        {isTickable ? <Box checked={checked} /> : <EyeOff className="icon tree-never" />}
      </span>
      {row.kind === 'schema' && <SchemaWords row={row} choice={choice} />}
      {row.kind === 'table' && <TableWords row={row} choice={choice} added={added} />}
      {row.kind === 'column' && <ColumnWords row={row} added={added} />}
    </div>
  )
}

const depthOf = (row: Row) => row.level - 1 + (row.kind === 'column' ? row.column.depth : 0)

const Box = ({ checked }: { readonly checked: Checked }) => <span className="tree-box" data-checked={checked} />

function SchemaWords({ row, choice }: { readonly row: SchemaRow; readonly choice: Choice }) {
  const { name, parts } = row.found
  const shown = parts.filter(({ node }) => shownIn(node, choice).size > 0).length
  return (
    <>
      <span className="tree-name">
        <bdi>{name}</bdi>
      </span>
      <Count shown={shown} of={parts.length} />
    </>
  )
}

function TableWords({
  row,
  choice,
  added,
}: {
  readonly row: TableRow
  readonly choice: Choice
  readonly added: Added
}) {
  const { node } = row.part
  const { table, kind, estimatedRows, warnings, refusals7d, lastReadAt, comment } = node.of
  return (
    <>
      <span className="tree-name" title={comment}>
        <bdi>{table}</bdi>
      </span>
      <span className="tree-type">
        {kind}
        {estimatedRows !== null && ` · ${counted(estimatedRows, 'row')}`}
      </span>
      <span className="tree-evidence">
        {isAdded(added, node) && <Tag tone="accent">new</Tag>}
        {warnings.length > 0 && (
          <span className="evidence warn" title={warnings.join('\n')}>
            {counted(warnings.length, 'warning')}
          </span>
        )}
        <Used refusals={refusals7d} lastReadAt={lastReadAt} />
      </span>
      <Count shown={shownIn(node, choice).size} of={node.columns.length} />
    </>
  )
}

function ColumnWords({ row, added }: { readonly row: ColumnRow; readonly added: Added }) {
  const { node, column } = row
  const { name, type, primaryKey, references, comment, unexposable, personal, refusals7d, lastReadAt } = column.of
  return (
    <>
      <span className="tree-name" title={comment}>
        <bdi>{name}</bdi>
      </span>
      <span className="tree-type">
        <bdi>{type}</bdi>
        {primaryKey && (
          <span className="tree-key">
            <Icon of={KeyRound} /> key
          </span>
        )}
        {references !== undefined && (
          <>
            {' → '}
            <bdi>
              {references.table}.{references.column}
            </bdi>
          </>
        )}
      </span>
      <span className="tree-evidence">
        {!added.has(node.key) && isAdded(added, node, column) && <Tag tone="accent">new</Tag>}
        {unexposable !== undefined && <Words>cannot be exposed: {lower(unexposable)}</Words>}
        {personal.guess && unexposable === undefined && (
          <Words tone="warn">looks personal{personal.why !== null && `: ${lower(personal.why)}`}</Words>
        )}
        <Used refusals={refusals7d} lastReadAt={lastReadAt} />
      </span>
    </>
  )
}

function Used({ refusals, lastReadAt }: { readonly refusals: number; readonly lastReadAt: string | undefined }) {
  return (
    <>
      {refusals > 0 && (
        <Words tone="bad">
          <Icon of={X} />
          refused {times(refusals)} this week
        </Words>
      )}
      {lastReadAt !== undefined && <Words>read {ago(lastReadAt)}</Words>}
    </>
  )
}

const times = (n: number) => (n === 1 ? 'once' : n === 2 ? 'twice' : `${number(n)} times`)

const Words = ({ tone, children }: { readonly tone?: 'warn' | 'bad'; readonly children: ReactNode }) => (
  <span className={classes('evidence', tone)}>{children}</span>
)

const Count = ({ shown, of }: { readonly shown: number; readonly of: number }) => (
  <span className={classes('tree-count', shown === 0 && 'none')}>
    {number(shown)} of {number(of)}
  </span>
)

/** Changes a sentence of the service so that it can end another sentence. */
const lower = (sentence: string) => sentence.charAt(0).toLowerCase() + sentence.slice(1).replace(/\.$/, '')
