// The page of a datasource's exposure. Loads the data of the editor. If the database was not introspected yet, explains
// how to introspect it.
import { useQuery } from '@tanstack/react-query'
import { Telescope } from 'lucide-react'
import { isCode } from '../../api/failure.ts'
import { read, useRead } from '../../api/queries.ts'
import { Button } from '../../parts/Button.tsx'
import { Empty } from '../../parts/Empty.tsx'
import { LoadState } from '../../parts/LoadState.tsx'
import { useDatasource } from './Datasource.tsx'
import { Editor } from './exposure/Editor.tsx'
import { useLook } from './introspect.ts'
import { IntrospectionProgress } from './IntrospectionProgress.tsx'
import './exposure/exposure.css'

export function Exposure() {
  const datasource = useDatasource()
  const input = { params: { teamId: datasource.teamId, id: datasource.id } }
  // A catalog may have several megabytes. It is fetched again only after changes, and never compared value by value.
  const catalog = useQuery({
    ...read('getCatalog', input),
    structuralSharing: false,
    staleTime: Infinity,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  })
  const saved = useQuery({ ...read('getExposure', input), structuralSharing: false, refetchOnWindowFocus: false })
  const drift = useRead('getDrift', input)
  if (isCode(catalog.error, 'NOT_CONNECTED')) return <NeverLookedAt />
  return (
    <LoadState of={catalog} what="tables" lines={10}>
      {(tables) => (
        <LoadState of={saved} what="exposure" lines={10}>
          {(exposure) => <Editor key={datasource.id} catalog={tables} saved={exposure} drift={drift.data} />}
        </LoadState>
      )}
    </LoadState>
  )
}

function NeverLookedAt() {
  const datasource = useDatasource()
  const look = useLook(datasource)
  return (
    <div className="stack">
      <Empty
        icon={Telescope}
        title="Nobody looked at this database yet"
        acts={
          <Button look="primary" busy={look.busy} onClick={look.run}>
            Look now
          </Button>
        }
      >
        Vitrine reads the names and types of tables and columns, so that you can choose what to show.{' '}
        {datasource.type === 'MONGODB'
          ? 'To find them, it reads a sample of the documents, and stores no value of a document.'
          : 'It reads no rows.'}
      </Empty>
      <IntrospectionProgress look={look} />
    </div>
  )
}
