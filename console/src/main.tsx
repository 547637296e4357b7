import { CSPProvider } from '@base-ui/react/csp-provider'
import { QueryClientProvider } from '@tanstack/react-query'
import { isNotFound, RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { queryClient } from './api/queries.ts'
import { watchService } from './api/send.ts'
import { openSession } from './api/session.ts'
import { router } from './router.tsx'
import './style/main.css'

openSession(() => {
  queryClient.clear()
  void router.navigate({ to: '/sign-in', search: {} })
})
watchService()

const place = document.getElementById('root')
if (place === null) throw new Error('index.html has no #root')
createRoot(place, {
  // A missing object is no defect, and has its own page.
  onCaughtError: (error) => {
    if (!isNotFound(error)) reportError(error)
  },
}).render(
  <StrictMode>
    {/* The content security policy refuses style elements. Our own CSS contains the styles that Base UI would add. */}
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
)
