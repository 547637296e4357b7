// The pages that mailed links lead to: a form, no style, nothing loaded from anywhere. Their addresses hold a token, so they
// are not kept and not told to others; only the one script whose hash stands in the policy runs.
import { hash } from 'node:crypto'

export function page(title: string, form: string, script: string): Response {
  const allowed = `'sha256-${hash('sha256', script, 'base64')}'`
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title></head><body>
${form}
<output></output>
<script>${script}</script>
</body></html>
`
  return new Response(html, {
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'referrer-policy': 'no-referrer',
      'content-security-policy': `default-src 'none'; script-src ${allowed}; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    },
  })
}

/** Takes the token out of the address, so that it stays in no history; `send` posts JSON and answers with what was told. */
export const COMMON_SCRIPT = `
const asked = new URLSearchParams(location.search)
history.replaceState(null, '', location.pathname)
const token = asked.get('token')
const form = document.querySelector('form')
const say = (text) => { document.querySelector('output').textContent = text }
const send = async (path, body) => {
  const answer = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const told = await answer.json()
  if (!answer.ok) throw new Error(told.error)
  return told
}
`
