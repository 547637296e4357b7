// A new key, which is shown only once. Escape and a click outside do not close the dialog, because the value would be
// lost.
import { useState } from 'react'
import { useRead } from '../../api/queries.ts'
import { StoredConfirmation } from '../../parts/DialogForm.tsx'
import { CodeBlock } from '../../parts/CodeBlock.tsx'
import { CopyField } from '../../parts/CopyField.tsx'
import { Dialog } from '../../parts/Dialog.tsx'
import { Notice } from '../../parts/Notice.tsx'
import { Tabs } from '../../parts/Tabs.tsx'
import { snippets, SNIPPETS, type Snippet } from './snippets.ts'

export interface Fresh {
  readonly key: string
  readonly name: string
  readonly teamId: string | null
  readonly datasourceId: string | null
}

export function FreshKey({ fresh, onDone }: { readonly fresh: Fresh | null; readonly onDone: () => void }) {
  return (
    <Dialog
      open={fresh !== null}
      stays
      wide
      onClose={() => undefined}
      title="Copy your key now"
      description="It is shown only once. Afterwards, only its last characters are visible."
    >
      {fresh !== null && <Shown fresh={fresh} onDone={onDone} />}
    </Dialog>
  )
}

function Shown({ fresh, onDone }: { readonly fresh: Fresh; readonly onDone: () => void }) {
  const [tab, setTab] = useState<Snippet>('curl')
  const place = useExample(fresh)
  const origin = useRead('getInstance', {}).data?.publicUrl ?? location.origin
  const texts = snippets({ origin, key: fresh.key, ...place })
  return (
    <div className="stack">
      <CopyField label="API key" value={fresh.key} verb="Copy key" />
      <Tabs label="Snippets" value={tab} onChange={setTab} tabs={SNIPPETS.map((value) => ({ value, label: value }))}>
        <CodeBlock label={`${tab} snippet`}>{texts[tab]}</CodeBlock>
      </Tabs>
      <Notice>The snippet contains the key. Store the key in an environment variable, not in a repository.</Notice>
      <StoredConfirmation label="I have stored this key" onDone={onDone} />
    </div>
  )
}

/** Returns a datasource for the example programs that the key reaches, if there is one. */
function useExample({ teamId, datasourceId }: Fresh) {
  const teams = useRead('listTeams', {}).data ?? []
  const team = teamId ?? teams.find(({ status, dataSourceCount }) => status === 'ACTIVE' && dataSourceCount > 0)?.id
  const list =
    useRead('listDatasources', { params: { teamId: team ?? '' } }, { enabled: team !== undefined }).data ?? []
  const datasource =
    list.find(({ id }) => id === datasourceId) ?? list.find(({ exposedTableCount }) => exposedTableCount > 0) ?? list[0]
  return { teamId: team, datasourceId: datasource?.id, type: datasource?.type }
}
