// The person's API keys, and the agents that the person connected.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Bot, KeyRound, Plus } from 'lucide-react'
import { useState } from 'react'
import { useRead } from '../../api/queries.ts'
import type { ApiKey } from '../../api/types.ts'
import { Page } from '../../frame/Page.tsx'
import { Button } from '../../parts/Button.tsx'
import { Empty } from '../../parts/Empty.tsx'
import { LoadState } from '../../parts/LoadState.tsx'
import { MenuItem, RowMenu } from '../../parts/Menu.tsx'
import { Table } from '../../parts/Table.tsx'
import { CodeTag, Tag } from '../../parts/Tag.tsx'
import { Time } from '../../parts/Time.tsx'
import { CreateKey } from './CreateKey.tsx'
import { Expiry, LastUse } from './key-cells.tsx'
import { EndGrant, RenameKey, RevokeKey, RotateKey } from './key-dialogs.tsx'
import { KeyReach, type Reach } from './KeyReach.tsx'
import { FreshKey, type Fresh } from './FreshKey.tsx'

type Doing = { readonly what: 'rename' | 'rotate' | 'revoke'; readonly key: ApiKey }

export function MyKeys() {
  const { create } = useSearch({ strict: false })
  const navigate = useNavigate()
  const [creating, setCreating] = useState(create !== undefined)
  const [fresh, setFresh] = useState<Fresh | null>(null)
  const keys = useRead('listKeys', {})
  const close = () => {
    setCreating(false)
    if (create !== undefined) void navigate({ to: '/settings/keys', replace: true })
  }
  return (
    <Page
      title="API keys"
      lead="A key can read what you can read, limited to its scopes, teams and datasources."
      acts={
        <Button look="primary" icon={Plus} onClick={() => setCreating(true)}>
          Create key
        </Button>
      }
    >
      <LoadState of={keys} what="API keys">
        {(data) =>
          data.length === 0 ? (
            <Empty icon={KeyRound} title="No key yet">
              Programs and scripts send queries with a key. Create a key for each of them, so that you can revoke each
              key separately.
            </Empty>
          ) : (
            <Keys keys={data} onFresh={setFresh} />
          )
        }
      </LoadState>
      <Agents />
      <CreateKey open={creating && fresh === null} onClose={close} onFresh={setFresh} />
      <FreshKey
        fresh={fresh}
        onDone={() => {
          setFresh(null)
          close()
        }}
      />
    </Page>
  )
}

function Keys({ keys, onFresh }: { readonly keys: readonly ApiKey[]; readonly onFresh: (fresh: Fresh) => void }) {
  const [doing, setDoing] = useState<Doing | null>(null)
  const stop = () => setDoing(null)
  return (
    <>
      <Table
        label="API keys"
        rows={keys}
        keyOf={({ id }) => id}
        columns={[
          { head: 'Name', kind: 'main', cell: (key) => <KeyName of={key} /> },
          { head: 'Key', cell: ({ hint }) => <CodeTag>…{hint.replace(/^[.…]+/, '')}</CodeTag> },
          { head: 'May', cell: ({ scopes }) => <Scopes of={scopes} /> },
          { head: 'Reaches', kind: 'quiet', cell: (key) => <KeyReach of={key} /> },
          { head: 'Last used', kind: 'quiet', cell: (key) => <LastUse of={key} /> },
          { head: 'Expires', kind: 'quiet', cell: (key) => <Expiry of={key} /> },
          {
            head: '',
            kind: 'acts',
            cell: (key) => (
              <RowMenu label={`Actions for ${key.name}`}>
                {key.state === 'ACTIVE' && (
                  <>
                    <MenuItem onSelect={() => setDoing({ what: 'rename', key })}>Rename</MenuItem>
                    <MenuItem onSelect={() => setDoing({ what: 'rotate', key })}>Rotate</MenuItem>
                  </>
                )}
                <MenuItem danger onSelect={() => setDoing({ what: 'revoke', key })}>
                  Revoke
                </MenuItem>
              </RowMenu>
            ),
          },
        ]}
      />
      {doing?.what === 'rename' && <RenameKey of={doing.key} onClose={stop} />}
      {doing?.what === 'rotate' && <RotateKey of={doing.key} onClose={stop} onFresh={onFresh} />}
      {doing?.what === 'revoke' && <RevokeKey of={doing.key} onClose={stop} />}
    </>
  )
}

function KeyName({ of }: { readonly of: ApiKey }) {
  return (
    <span className="row">
      <bdi>{of.name}</bdi>
      {of.state === 'GRACE' && <Tag tone="warn">old value</Tag>}
      {of.state === 'EXPIRED' && <Tag tone="bad">expired</Tag>}
    </span>
  )
}

const Scopes = ({ of }: { readonly of: Reach['scopes'] }) => (
  <span className="tags">
    {of.map((scope) => (
      <CodeTag key={scope}>{scope}</CodeTag>
    ))}
  </span>
)

/** Lists the agents that connect through OAuth, without a key. The access of each agent can be ended separately. */
function Agents() {
  const grants = useRead('listGrants', {})
  const [ending, setEnding] = useState<{ readonly id: string; readonly name: string } | null>(null)
  return (
    <section className="stack close" aria-label="Connected agents">
      <h2>Connected agents</h2>
      <LoadState of={grants} what="connected agents" lines={2}>
        {(data) =>
          data.length === 0 ? (
            <Empty icon={Bot} title="No agent yet">
              Add {`${location.origin}/mcp`} to an agent that supports MCP. You then choose what the agent may read.
            </Empty>
          ) : (
            <Table
              label="Connected agents"
              rows={data}
              keyOf={({ id }) => id}
              columns={[
                {
                  head: 'Agent',
                  kind: 'main',
                  cell: ({ clientName, clientHost }) => (
                    <span className="person-words">
                      <bdi>{clientName}</bdi>
                      <bdi className="tiny">{clientHost}</bdi>
                    </span>
                  ),
                },
                { head: 'May', cell: ({ scopes }) => <Scopes of={scopes} /> },
                { head: 'Reaches', kind: 'quiet', cell: (grant) => <KeyReach of={grant} /> },
                { head: 'Since', kind: 'quiet', cell: ({ createdAt }) => <Time at={createdAt} /> },
                { head: 'Last used', kind: 'quiet', cell: (grant) => <LastUse of={grant} /> },
                {
                  head: '',
                  kind: 'acts',
                  cell: ({ id, clientName }) => (
                    <Button
                      small
                      look="danger"
                      aria-label={`End access of ${clientName}`}
                      onClick={() => setEnding({ id, name: clientName })}
                    >
                      End access
                    </Button>
                  ),
                },
              ]}
            />
          )
        }
      </LoadState>
      {ending !== null && <EndGrant {...ending} onClose={() => setEnding(null)} />}
    </section>
  )
}
