// The start page of a team: numbers of this week, the remaining budget, and tasks for the person.
import { Link } from '@tanstack/react-router'
import { Plus, SquareTerminal } from 'lucide-react'
import { useRead } from '../../api/queries.ts'
import type { Usage } from '../../api/types.ts'
import { Page } from '../../frame/Page.tsx'
import { hasRole, useTeam } from '../../frame/current-team.ts'
import { LinkButton } from '../../parts/Button.tsx'
import { LoadState } from '../../parts/LoadState.tsx'
import { ago, number } from '../../parts/format.ts'
import { WaitingForYou } from './WaitingForYou.tsx'
import { WeekChart } from './WeekChart.tsx'
import './home.css'

const DAYS = 7

export function Home() {
  const team = useTeam()
  const usage = useRead('getUsage', { params: { teamId: team.id }, query: { days: DAYS } })
  const datasources = useRead('listDatasources', { params: { teamId: team.id } }).data
  const begins = datasources?.length === 0 && hasRole(team, 'ADMIN')
  return (
    <Page
      title="Home"
      lead="What people, programs and agents asked of this team’s data."
      acts={
        begins ? (
          <LinkButton to="/t/$team/datasources/new" params={{ team: team.slug }} look="primary" icon={Plus}>
            Connect a datasource
          </LinkButton>
        ) : (
          <LinkButton to="/t/$team/playground" params={{ team: team.slug }} look="primary" icon={SquareTerminal}>
            Ask a question
          </LinkButton>
        )
      }
    >
      <div className={begins ? 'home begins' : 'home'}>
        <section className="panel home-week" aria-label="This week">
          <header>
            <h2>This week</h2>
            <Link to="/t/$team/activity" params={{ team: team.slug }} className="small">
              Activity
            </Link>
          </header>
          <div className="panel-body">
            <LoadState of={usage} what="usage">
              {(data) => <Week usage={data} />}
            </LoadState>
          </div>
        </section>
        <section className="panel" aria-label="Budget">
          <header>
            <h2>Budget</h2>
          </header>
          <div className="panel-body">
            <LoadState of={usage} what="budget" lines={2}>
              {({ budget }) => <Budget budget={budget} />}
            </LoadState>
          </div>
        </section>
        <WaitingForYou />
      </div>
    </Page>
  )
}

function Week({ usage }: { readonly usage: Usage }) {
  const sum = (field: 'queries' | 'denied' | 'failed' | 'rows') =>
    usage.days.reduce((total, each) => total + each[field], 0)
  const [queries, denied, failed] = [sum('queries'), sum('denied'), sum('failed')]
  const answered = queries - denied - failed
  const share = queries === 0 ? '–' : `${Math.round((answered / queries) * 100)} %`
  return (
    <>
      <dl className="figures">
        <Figure name="Questions" value={number(queries)} />
        <Figure name="Answered" value={share} />
        <Figure name="Refused" value={number(denied)} />
        <Figure name="Rows" value={number(sum('rows'))} />
      </dl>
      {queries === 0 ? (
        <p className="soft small">Nothing was asked this week. Questions of people, programs and agents appear here.</p>
      ) : (
        <WeekChart days={usage.days} count={DAYS} />
      )}
    </>
  )
}

const Figure = ({ name, value }: { readonly name: string; readonly value: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>{value}</dd>
  </div>
)

function Budget({ budget: { limit, remaining, resetsAt } }: { readonly budget: Usage['budget'] }) {
  const label = `${number(remaining)} of ${number(limit)} questions left`
  return (
    <>
      <p className="figure-big">
        {number(remaining)} <span className="soft small">of {number(limit)} left</span>
      </p>
      <meter min={0} max={limit} low={limit / 10} value={remaining} aria-label={label}>
        {label}
      </meter>
      <p className="tiny">
        {resetsAt === null ? 'Nothing was spent in this window.' : `The window ends ${ago(resetsAt)}.`} People, keys and
        agents share the budget.
      </p>
    </>
  )
}
