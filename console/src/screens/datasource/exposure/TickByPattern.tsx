// Ticks or unticks the columns that match a pattern. Shows the number of columns first.
import { useDeferredValue, useMemo, useState } from 'react'
import { Button } from '../../../parts/Button.tsx'
import { Dialog } from '../../../parts/Dialog.tsx'
import { Checkbox, Group, Radio, TextField } from '../../../parts/Field.tsx'
import { counted } from '../../../parts/format.ts'
import { columnCount, differenceOf, withColumns, type Choice } from './choice.ts'
import { namesOf, type Part, type SchemaNode } from './catalog-tree.ts'
import { matcherOf } from './name-pattern.ts'
import type { Found } from './visible-rows.ts'

interface TickByPatternProps {
  readonly open: boolean
  readonly onClose: () => void
  readonly schemas: readonly SchemaNode[]
  /** The columns that the filter shows. Null without a filter. */
  readonly found: readonly Found[] | null
  readonly choice: Choice
  readonly onChange: (choice: Choice) => void
}

export function TickByPattern({ open, onClose, ...rest }: TickByPatternProps) {
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title="Tick matching"
      description="Ticks or unticks all columns that match. You review the change before you save it."
    >
      {open && <Form {...rest} onClose={onClose} />}
    </Dialog>
  )
}

function Form({ schemas, found, choice, onChange, onClose }: Omit<TickByPatternProps, 'open'>) {
  const [pattern, setPattern] = useState('')
  const [on, setOn] = useState(true)
  const [sparing, setSparing] = useState(true)
  const [inFilter, setInFilter] = useState(found !== null)
  const settled = useDeferredValue(pattern)
  const next = useMemo(() => {
    const all = inFilter && found !== null ? found.flatMap(({ parts }) => parts) : everything(schemas)
    const parts = matching(all, settled, on && sparing)
    return withColumns(
      choice,
      parts.map((part) => [part.node.key, [...namesOf(part, on, choice)]] as const),
      on,
    )
  }, [schemas, found, choice, settled, on, sparing, inFilter])
  const difference = useMemo(() => differenceOf(choice, next), [choice, next])
  const tables = on ? difference.added : difference.removed
  const count = columnCount(tables)
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault()
        onChange(next)
        onClose()
      }}
    >
      <TextField
        label="Names like"
        value={pattern}
        placeholder="*_id"
        spellCheck={false}
        autoComplete="off"
        autoFocus
        onChange={(event) => setPattern(event.target.value)}
        note="A star matches any characters: *_id, public.orders.*, billing.*.*. Separate patterns with commas. If empty, all columns match."
      />
      <Group label="Do" role="radiogroup">
        <Radio name="bulk" label="Tick: show these columns" checked={on} onChange={() => setOn(true)} />
        <Radio name="bulk" label="Untick: hide these columns" checked={!on} onChange={() => setOn(false)} />
      </Group>
      {on && (
        <Checkbox
          label="Leave out what looks personal"
          checked={sparing}
          onChange={(event) => setSparing(event.target.checked)}
        />
      )}
      {found !== null && (
        <Checkbox
          label="Only what the filter shows"
          checked={inFilter}
          onChange={(event) => setInFilter(event.target.checked)}
        />
      )}
      <p role="status">
        {count === 0
          ? 'Nothing would change.'
          : `${on ? 'Ticks' : 'Unticks'} ${counted(count, 'column')} in ${counted(tables.length, 'table')}.`}
      </p>
      <div className="row apart">
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look="primary" disabled={count === 0}>
          {on ? 'Tick' : 'Untick'} {counted(count, 'column')}
        </Button>
      </div>
    </form>
  )
}

const everything = (schemas: readonly SchemaNode[]): Part[] =>
  schemas.flatMap(({ tables }) => tables.map((node) => ({ node, columns: node.columns })))

function matching(parts: readonly Part[], pattern: string, sparing: boolean): Part[] {
  const fits = matcherOf(pattern)
  return parts.flatMap(({ node, columns }) => {
    const { schema, table } = node.of
    const some = columns.filter(({ of }) => fits(schema, table, of.name) && !(sparing && of.personal.guess))
    return some.length === 0 ? [] : [{ node, columns: some }]
  })
}
