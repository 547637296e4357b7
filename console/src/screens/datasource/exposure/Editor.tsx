// The editor of an exposure: filter, tree, bar of unsaved changes, and their dialogs.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Bot, DatabaseZap, History, ListChecks, Search } from 'lucide-react'
import { useCallback, useDeferredValue, useMemo, useRef, useState } from 'react'
import type { Answer } from '../../../api/types.ts'
import { useTeam } from '../../../frame/current-team.ts'
import { Button } from '../../../parts/Button.tsx'
import { Empty } from '../../../parts/Empty.tsx'
import { Notice } from '../../../parts/Notice.tsx'
import { say } from '../../../parts/StatusMessages.tsx'
import { counted, number } from '../../../parts/format.ts'
import { useDatasource } from '../Datasource.tsx'
import { DatabaseGrants } from './DatabaseGrants.tsx'
import { AgentView } from './AgentView.tsx'
import { TickByPattern } from './TickByPattern.tsx'
import {
  apply,
  choiceOf,
  tableKey,
  tablesOf,
  withColumns,
  type Choice,
  type Exposure,
  type TableNames,
} from './choice.ts'
import { Filters } from './Filters.tsx'
import { FirstAnswer } from './FirstAnswer.tsx'
import { FromRefusal, type Proposal } from './FromRefusal.tsx'
import { GoneNames } from './GoneNames.tsx'
import { checkedOf, namesOf, nodesOf, totalsOf, type Catalog, type SchemaNode, type Totals } from './catalog-tree.ts'
import { Review } from './Review.tsx'
import { addedOf, find, nameOf, partsOf, rowsOf, type Filter, type Row } from './visible-rows.ts'
import { SaveBar } from './SaveBar.tsx'
import { Tree } from './Tree.tsx'
import { readUnsaved, useKeepUnsaved, writeUnsaved } from './unsaved.ts'
import { useDraft } from './useDraft.ts'
import { usePreview } from './usePreview.ts'
import { Versions } from './Versions.tsx'

interface EditorProps {
  readonly catalog: Catalog
  readonly saved: Exposure
  readonly drift: Answer<'getDrift'> | undefined
}

const NO_FILTER: Filter = { text: '', show: 'all' }

type Open = 'review' | 'bulk' | 'versions' | 'agent' | 'agree' | null

export function Editor({ catalog, saved, drift }: EditorProps) {
  const team = useTeam()
  const datasource = useDatasource()
  const { from, step } = useSearch({ strict: false })
  const navigate = useNavigate()
  const schemas = useMemo(() => nodesOf(catalog), [catalog])
  const draft = useDraft(datasource, saved)
  const { choice } = draft
  const [open, setOpen] = useState<Open>(null)
  const close = () => setOpen(null)
  const [note, setNote] = useState('')
  const [warnings, setWarnings] = useState<readonly string[]>([])
  const [proposal, setProposal] = useState<Proposal | null>(null)
  const [unsaved, setUnsaved] = useState(() => readUnsaved(datasource.id))
  useKeepUnsaved(datasource.id, draft.difference, unsaved !== null)
  const impact = usePreview(datasource, draft.isChanged ? choice : null)
  const totals = useMemo(() => totalsOf(schemas, choice), [schemas, choice])
  const view = useView(schemas, choice, drift)

  const tick = (rows: readonly Row[]) => {
    const [first] = rows
    if (first === undefined) return
    const on = checkedOf(partsOf(first), choice) !== 'true'
    const parts = rows.flatMap(partsOf)
    const next = withColumns(
      choice,
      parts.map((part) => [part.node.key, [...namesOf(part, on, choice)]] as const),
      on,
    )
    const isHeld = first.kind === 'column' && checkedOf(partsOf(first), next) === (on ? 'false' : 'true')
    if (isHeld && !on)
      say(`${nameOf(first)} is shown with ${first.column.of.partOf ?? 'its column'}. Untick that first`)
    draft.set(next)
  }
  const restore = (version: number, tables: readonly TableNames[]) => {
    draft.set(existing(tables, schemas, draft.base.choice))
    setNote(`Restored version ${version}`)
    setOpen('review')
  }
  const forgetRefusal = () => void navigate({ to: '.', search: {}, replace: true })
  const discard = () => {
    draft.discard()
    setNote('')
    if (from !== undefined) forgetRefusal()
  }
  const save = async () => {
    const exposure = await draft.save(note.trim())
    if (exposure === null) return
    close()
    setNote('')
    setWarnings(exposure.warnings ?? [])
    writeUnsaved(datasource.id, { added: [], removed: [] })
    say(`Saved as version ${exposure.version}`)
  }
  const review = useCallback(() => setOpen((now) => now ?? 'review'), [])
  const canAgree = draft.base.version > 0
  return (
    <div className="exposure">
      <div className="row apart">
        <Summary totals={totals} isChanged={draft.isChanged} />
        <div className="row">
          {canAgree && (
            <Button icon={DatabaseZap} onClick={() => setOpen('agree')}>
              Make the database agree
            </Button>
          )}
          <Button icon={Bot} onClick={() => setOpen('agent')}>
            As an agent sees it
          </Button>
          <Button icon={History} onClick={() => setOpen('versions')}>
            Versions
          </Button>
        </div>
      </div>
      {step !== undefined && <FirstAnswer saved={draft.base.choice} />}
      {unsaved !== null && (
        <Notice role="status">
          <p>Restore unsaved changes?</p>
          <p className="tiny">You left this page before you saved them.</p>
          <div className="row conflict-acts">
            <Button
              small
              onClick={() => {
                draft.set(existing(tablesOf(apply(choice, unsaved)), schemas, draft.base.choice))
                setUnsaved(null)
              }}
            >
              Restore changes
            </Button>
            <Button
              small
              look="quiet"
              onClick={() => {
                writeUnsaved(datasource.id, { added: [], removed: [] })
                setUnsaved(null)
              }}
            >
              Forget them
            </Button>
          </div>
        </Notice>
      )}
      {from !== undefined && (
        <FromRefusal
          auditId={from}
          savedVersion={draft.base.version}
          known={proposal}
          onProposal={(next) => {
            setProposal(next)
            if (next.added.length === 0) return
            draft.set(apply(choice, { added: next.added, removed: [] }))
            setNote(next.note)
            view.open(next.added.map(({ schema, table }) => tableKey(schema, table)))
          }}
        />
      )}
      {warnings.length > 0 && (
        <Notice tone="warn" role="note">
          {warnings.map((warning) => (
            <p key={warning}>{warning}</p>
          ))}
        </Notice>
      )}
      <GoneNames gone={saved.gone} choice={choice} onDrop={draft.set} />
      <Filters
        filter={view.filter}
        counts={view.counts}
        onChange={view.setFilter}
        end={
          <Button icon={ListChecks} aria-label="Tick matching" onClick={() => setOpen('bulk')}>
            Tick matching…
          </Button>
        }
      />
      {view.rows.length === 0 ? (
        <NothingFound isEmpty={catalog.tables.length === 0} onClear={() => view.setFilter(NO_FILTER)} />
      ) : (
        <Tree rows={view.rows} choice={choice} added={view.added} onFlip={view.flip} onTick={tick} />
      )}
      {draft.isChanged && (
        <SaveBar difference={draft.difference} impact={impact} onDiscard={discard} onReview={review} />
      )}
      <Review
        open={open === 'review'}
        onClose={close}
        teamId={team.id}
        draft={draft}
        impact={impact}
        note={note}
        onNote={setNote}
        onSave={save}
      />
      <TickByPattern
        open={open === 'bulk'}
        onClose={close}
        schemas={schemas}
        found={view.isFiltered ? view.found : null}
        choice={choice}
        onChange={draft.set}
      />
      <Versions
        open={open === 'versions'}
        onClose={close}
        datasource={datasource}
        current={draft.base.version}
        onRestore={restore}
      />
      <AgentView open={open === 'agent'} onClose={close} datasource={datasource} isChanged={draft.isChanged} />
      {canAgree && <DatabaseGrants open={open === 'agree'} onClose={close} isChanged={draft.isChanged} />}
    </div>
  )
}

/**
 * Leaves out names that a save would refuse: names outside the saved exposure that are not in the database or cannot be
 * exposed.
 */
function existing(tables: readonly TableNames[], schemas: readonly SchemaNode[], saved: Choice): Choice {
  const known = new Map(
    schemas.flatMap(({ tables: nodes }) =>
      nodes.map((node) => [
        node.key,
        new Set(node.columns.flatMap(({ of }) => (of.unexposable === undefined ? [of.name] : []))),
      ]),
    ),
  )
  const wanted = choiceOf(tables)
  const names = [...wanted].map(([key, columns]) => {
    const fits = [...columns].filter((each) => known.get(key)?.has(each) === true || saved.get(key)?.has(each) === true)
    return [key, fits] as const
  })
  // Unchanged tables keep their Set objects, so that comparisons stay cheap.
  const next = withColumns(new Map(), names, true)
  return new Map([...next].map(([key, set]) => [key, same(saved.get(key), set)]))
}

const same = (before: ReadonlySet<string> | undefined, now: ReadonlySet<string>) =>
  before !== undefined && before.size === now.size && now.isSubsetOf(before) ? before : now

/** Returns the filter, the visible rows, and functions that change the filter and open or close rows. */
function useView(schemas: readonly SchemaNode[], choice: Choice, drift: Answer<'getDrift'> | undefined) {
  const [filter, setFilter] = useState(NO_FILTER)
  const settled = useDeferredValue(filter)
  const [flipped, setFlipped] = useState<ReadonlySet<string>>(new Set())
  const [flippedInFilter, setFlippedInFilter] = useState<ReadonlySet<string>>(new Set())
  const isFiltered = settled.show !== 'all' || settled.text.trim() !== ''
  const added = useMemo(() => addedOf(drift), [drift])
  // The filter uses the choice at the time when the filter was set, so that rows do not disappear while somebody ticks.
  const latest = useRef(choice)
  latest.current = choice
  const found = useMemo(() => find(schemas, settled, { choice: latest.current, added }), [schemas, settled, added])
  const open = isFiltered ? flippedInFilter : flipped
  const rows = useMemo(() => rowsOf(found, open, isFiltered), [found, open, isFiltered])
  const counts = useMemo(() => countsOf(schemas, added), [schemas, added])
  return {
    filter,
    setFilter(next: Filter) {
      setFilter(next)
      setFlippedInFilter(new Set())
    },
    isFiltered,
    found,
    rows,
    added,
    counts,
    /** Opens tables in the tree without a filter. A flipped table is open, because tables are closed by default. */
    open(keys: readonly string[]) {
      setFlipped((before) => before.union(new Set(keys)))
    },
    flip(these: readonly Row[]) {
      const set = isFiltered ? setFlippedInFilter : setFlipped
      set((before) => before.symmetricDifference(new Set(these.map(({ id }) => id))))
    },
  }
}

/** Returns the numbers that three buttons of the filter show. */
function countsOf(schemas: readonly SchemaNode[], added: ReadonlySet<string>) {
  let [personal, wanted] = [0, 0]
  for (const { tables } of schemas) {
    for (const { of, columns } of tables) {
      const before = wanted
      for (const { of: column } of columns) {
        if (column.personal.guess) personal++
        if (column.refusals7d > 0 && !column.exposed) wanted++
      }
      if (wanted === before && of.refusals7d > 0 && !of.exposed) wanted++
    }
  }
  return { new: added.size, personal, wanted }
}

const Summary = ({ totals, isChanged }: { readonly totals: Totals; readonly isChanged: boolean }) => (
  <p className="exposure-summary">
    {isChanged ? 'After a save, agents see' : 'Agents see'}{' '}
    <strong>
      {number(totals.tablesShown)} of {counted(totals.tables, 'table')}
    </strong>
    , {number(totals.columnsShown)} of {counted(totals.columns, 'column')}
  </p>
)

function NothingFound({ isEmpty, onClear }: { readonly isEmpty: boolean; readonly onClear: () => void }) {
  if (isEmpty)
    return (
      <Empty icon={Search} title="The login sees no table">
        Grant the database login the right to read the tables that you want to show. Then use “Look again” under Health.
      </Empty>
    )
  return (
    <Empty icon={Search} title="Nothing fits" acts={<Button onClick={onClear}>Show all</Button>}>
      No table or column matches the filter.
    </Empty>
  )
}
