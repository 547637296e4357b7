// The page of a password reset link lists what the new password ends. The person can keep some of it.
import { PASSWORD } from '../contract/sign-in-routes.ts'
import { COMMON_SCRIPT, page } from './html-page.ts'

const FORM = `<form hidden>
<p><label>New password <input name="password" type="password" autocomplete="new-password" required minlength="${PASSWORD.min}" maxlength="${PASSWORD.max}"></label></p>
<p>All sessions will end.</p>
<fieldset id="keys" hidden><legend>API keys of this account</legend></fieldset>
<fieldset id="grants" hidden><legend>Agents that act for this account</legend></fieldset>
<fieldset id="passkeys" hidden><legend>Passkeys</legend></fieldset>
<fieldset id="providers" hidden><legend>Connected accounts</legend></fieldset>
<fieldset id="factor" hidden><legend>Second factor</legend>
<p><label><input name="endFactor" type="checkbox" checked> end the second factor</label></p>
<p><label>A code from the authenticator, or a backup code. Without a code the second factor stays on. <input name="code" autocomplete="one-time-code" maxlength="100"></label></p>
</fieldset>
<p><button>Set password</button></p>
</form>`

// Names come from users and agents, so insert them as text, never as HTML.
const SCRIPT = `${COMMON_SCRIPT}
const boxes = { keys: [], grants: [], passkeys: [], providers: [] }
const add = (kind, id, text, held) => {
  const box = document.createElement('input')
  box.type = 'checkbox'
  box.checked = true
  box.disabled = !held.mayKeep
  const label = document.createElement('label')
  label.append(box, text)
  const line = document.createElement('p')
  line.append(label)
  document.querySelector('#' + kind).append(line)
  boxes[kind].push({ id, box })
}
const used = ({ lastUsedAt }) => lastUsedAt === null ? 'never used' : 'last used ' + lastUsedAt.slice(0, 10)
const keptOf = (kind) => boxes[kind].filter(({ box }) => !box.checked).map(({ id }) => id)
const show = (held) => {
  for (const key of held.keys) add('keys', key.id, ' revoke the key ' + key.name + ' (' + key.hint + ', ' + used(key) + ')', held)
  for (const grant of held.grants)
    add('grants', grant.id, ' end the access of ' + grant.clientName + ' (' + grant.clientHost + ', ' + used(grant) + ')', held)
  for (const passkey of held.passkeys) add('passkeys', passkey.id, ' remove the passkey ' + passkey.name + ' (' + used(passkey) + ')', held)
  for (const { provider, name, label } of held.providers) add('providers', provider, ' disconnect ' + name + (label === null ? '' : ' (' + label + ')'), held)
  document.querySelector('#providers').hidden = held.providers.length === 0
  document.querySelector('#passkeys').hidden = held.passkeys.length === 0
  document.querySelector('#grants').hidden = held.grants.length === 0
  document.querySelector('#keys').hidden = held.keys.length === 0
  document.querySelector('#factor').hidden = !held.secondFactor || !held.mayKeep
  form.hidden = false
}
post('/auth/reset-password/preview', { token }).then(show).catch((error) => say(error.message))
form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const keep = { keyIds: keptOf('keys'), grantIds: keptOf('grants'), passkeyIds: keptOf('passkeys'), providers: keptOf('providers'), secondFactor: !form.endFactor.checked }
  const code = form.code.value.trim()
  try {
    const body = { token, newPassword: form.password.value, keep, ...(code === '' ? {} : { code }) }
    const { kept } = await post('/auth/reset-password', body)
    form.hidden = true
    say('The new password is set. Sign in with it.' + (kept.secondFactor ? ' The second factor stays on.' : ''))
  } catch (error) {
    say(error.message)
  }
})
`

export const resetPage = (): Response => page('New password', FORM, SCRIPT)
