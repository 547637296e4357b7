// The pages behind mailed links: a form without styles or external resources. Their URLs hold a token, so the pages are
// not cached and send no referrer. The content security policy allows one script, by hash.
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

/**
 * Removes the token from the URL, so that the history does not keep it. `send` posts JSON and returns the response
 * body.
 */
export const COMMON_SCRIPT = `
const params = new URLSearchParams(location.search)
history.replaceState(null, '', location.pathname)
const token = params.get('token')
const form = document.querySelector('form')
const say = (text) => { document.querySelector('output').textContent = text }
const send = async (path, body) => {
  const answer = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const data = await answer.json()
  if (!answer.ok) throw new Error(data.error)
  return data
}
`
