// The page that a mailed link for a new password leads to: one field, no style, nothing loaded. It sends what was typed
// to POST /auth/reset-password, and knows nothing of the token but to pass it on.
import { hash } from 'node:crypto'
import { PASSWORD } from './library.ts'

const SCRIPT = `
const token = new URLSearchParams(location.search).get('token')
history.replaceState(null, '', location.pathname)
const form = document.querySelector('form')
form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const answer = await fetch(location.pathname, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token, newPassword: form.password.value }),
  })
  const told = await answer.json()
  document.querySelector('output').textContent = answer.ok ? 'The new password is set: sign in with it.' : told.error
})
`

const PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>New password</title></head><body>
<form>
<label>New password <input name="password" type="password" autocomplete="new-password" required minlength="${PASSWORD.min}" maxlength="${PASSWORD.max}"></label>
<button>Set it</button>
</form>
<output></output>
<script>${SCRIPT}</script>
</body></html>
`

/** The page; its address holds a token, so nothing of it may be kept or told to others. */
export function resetPage(): Response {
  const script = `'sha256-${Buffer.from(hash('sha256', SCRIPT, 'buffer')).toString('base64')}'`
  return new Response(PAGE, {
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'referrer-policy': 'no-referrer',
      'content-security-policy': `default-src 'none'; script-src ${script}; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    },
  })
}
