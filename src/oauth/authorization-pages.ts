// The pages of an authorization: errors, sign-in, and the consent. Texts from agents are escaped.
import { PASSWORD } from '../contract/sign-in-routes.ts'
import { page, TELLING_SCRIPT } from '../sign-in/html-page.ts'
import type { Scope } from '../auth/caller.ts'
import { SCOPES } from './scopes.ts'

const STYLE = `
body { font: 16px/1.5 system-ui, sans-serif; max-width: 34rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.75rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
fieldset { margin: 1rem 0; } fieldset fieldset { border: 0; margin: 0 0 0 1.5rem; padding: 0; }
label { display: block; } .quiet { color: #555; overflow-wrap: anywhere; }
`

export function errorPage(sentence: string): Response {
  return page(
    'This agent cannot be connected',
    `<h1>This agent cannot be connected</h1><p>${escaped(sentence)}</p>`,
    '',
    {
      style: STYLE,
      status: 400,
    },
  )
}

/** `here` is the path of this page, to which the browser returns after the sign-in. */
export function signInPage(host: string, here: string): Response {
  const form = `<h1>Sign in</h1>
<p>${escaped(host)} asks for access to Vitrine. Sign in to decide.</p>
<form id="password"><p><label>E-mail <input name="email" type="email" autocomplete="username" required></label></p>
<p><label>Password <input name="password" type="password" autocomplete="current-password" required maxlength="${PASSWORD.max}"></label></p>
<p><button>Sign in</button></p></form>
<form id="code" hidden><p><label>A code from the authenticator, or a backup code <input name="code" autocomplete="one-time-code" required maxlength="100"></label></p>
<p><button>Continue</button></p></form>
<p><a href="/app/sign-in?next=${encodeURIComponent(here)}">Sign in with a passkey or another account</a></p>`
  return page('Sign in', form, SIGN_IN_SCRIPT, { style: STYLE })
}

export interface Asked {
  readonly clientName: string
  readonly host: string
  /** False if only the redirect URI identifies the agent. */
  readonly hasDocument: boolean
  readonly redirectUri: string
  readonly isOwnComputer: boolean
  readonly scopes: readonly Scope[]
  readonly account: { readonly id: string; readonly name: string; readonly email: string }
  readonly teams: readonly {
    readonly id: string
    readonly name: string
    /** Null if the page lists no datasources of the team, because it would be too long. */
    readonly datasources: readonly { readonly id: string; readonly name: string }[] | null
  }[]
}

const SENTENCES: Readonly<Record<Scope, string>> = {
  profile: 'See your name and e-mail address',
  'data:schema': 'See the names of the teams and datasources below, and the tables and columns that they show',
  'data:read': 'Run read-only queries on the datasources below, within what they show and the budget of the team',
}

export function consentPage(asked: Asked): Response {
  return page('Connect an agent', formOf(asked), CONSENT_SCRIPT, { style: STYLE })
}

function formOf({ clientName, host, hasDocument, redirectUri, isOwnComputer, account, scopes, teams }: Asked): string {
  const doubt = hasDocument ? '' : ' It is not published anywhere: everybody can choose this name.'
  const place = isOwnComputer ? 'a program on your own computer' : escaped(new URL(redirectUri).host)
  const boxes = SCOPES.filter((scope) => scopes.includes(scope)).map(
    (scope) => `<label><input type="checkbox" name="scope" value="${scope}" checked> ${SENTENCES[scope]}</label>`,
  )
  const listed = teams.map(({ id, name, datasources }) =>
    datasources === null ? wholeTeam(id, name) : teamWith(id, name, datasources),
  )
  return `<p>This agent asks for access to Vitrine:</p>
<h1>${escaped(host)}</h1>
<p>It calls itself <em>${escaped(clientName)}</em>.${doubt}</p>
<p>It continues in <strong>${place}</strong>. <span class="quiet">${escaped(redirectUri)}</span></p>
<p>You are signed in as <strong>${escaped(account.name)}</strong> (${escaped(account.email)}). <button id="other" type="button">Use another account</button></p>
<form data-account="${account.id}">
<fieldset><legend>What may it do?</legend>${boxes.join('\n')}</fieldset>
<fieldset><legend>Where?</legend>${listed.join('\n') || '<p>You are in no team yet.</p>'}
<label><input type="checkbox" name="later"> Also datasources that are added to these teams later</label></fieldset>
<p><label>For how long? <select name="days"><option value="1">One day</option><option value="7">A week</option><option value="30" selected>30 days</option><option value="90">90 days</option><option value="">Until I end it</option></select></label></p>
<p>It can never write, and never see what the teams do not show. You can narrow or end its access at any time.</p>
<p><button name="allow">Allow</button> <button name="refuse" type="button">Refuse</button></p>
</form>`
}

function teamWith(id: string, name: string, datasources: readonly { readonly id: string; readonly name: string }[]) {
  const boxes = datasources.map(
    (each) =>
      `<label><input type="checkbox" name="datasource" value="${each.id}" data-team="${id}" checked> ${escaped(each.name)}</label>`,
  )
  return `<label><input type="checkbox" name="team" value="${id}" checked> ${escaped(name)}</label>
<fieldset>${boxes.join('\n')}</fieldset>`
}

/** Such a team can be chosen only with all its datasources. */
function wholeTeam(id: string, name: string): string {
  return `<label><input type="checkbox" name="team" value="${id}" data-whole disabled> ${escaped(name)}</label>
<fieldset><p class="quiet">There are too many datasources to list them here. To choose this team, first tick “Also datasources that are added to these teams later”.</p></fieldset>`
}

const SIGN_IN_SCRIPT = `${TELLING_SCRIPT}
const on = (id, send) => document.querySelector(id).addEventListener('submit', async (event) => {
  event.preventDefault()
  say('')
  try {
    await send(event.target)
  } catch (error) {
    say(error.message)
  }
})
on('#password', async (form) => {
  const data = await post('/auth/sign-in/email', { email: form.email.value, password: form.password.value })
  if (data.twoFactorRedirect !== true) return location.reload()
  form.hidden = true
  document.querySelector('#code').hidden = false
})
on('#code', async (form) => {
  const code = form.code.value.trim()
  const kind = /^\\d{6}$/.test(code) ? 'verify-totp' : 'verify-backup-code'
  await post('/auth/two-factor/' + kind, { code })
  location.reload()
})
`

const CONSENT_SCRIPT = `${TELLING_SCRIPT}
const form = document.querySelector('form')
const ticked = (name) => [...form.querySelectorAll('input[name=' + name + ']:checked:not(:disabled)')].map((box) => box.value)
const update = () => {
  for (const box of form.querySelectorAll('input[data-whole]')) box.disabled = !form.later.checked
  for (const box of form.querySelectorAll('input[name=datasource]')) {
    const team = form.querySelector('input[name=team][value="' + box.dataset.team + '"]')
    box.disabled = !team.checked || form.later.checked
  }
}
const send = async (choice) => {
  say('')
  for (const button of document.querySelectorAll('button')) button.disabled = true
  try {
    const query = location.search.slice(1)
    const { url } = await post('/auth/consent', { query, accountId: form.dataset.account, ...choice })
    location.assign(url)
    say('You can close this page.')
  } catch (error) {
    say(error.message)
    for (const button of document.querySelectorAll('button')) button.disabled = false
  }
}
form.addEventListener('change', update)
form.addEventListener('submit', (event) => {
  event.preventDefault()
  const days = form.days.value === '' ? null : Number(form.days.value)
  const datasourceIds = form.later.checked ? null : ticked('datasource')
  send({ allow: { scopes: ticked('scope'), teamIds: ticked('team'), datasourceIds, days } })
})
form.refuse.addEventListener('click', () => send({}))
document.querySelector('#other').addEventListener('click', async () => {
  await post('/auth/sign-out', {})
  location.reload()
})
`

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (char) => ENTITIES[char] ?? '')
}
