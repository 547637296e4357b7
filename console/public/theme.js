// Runs before the first paint, so that the page never flashes in the wrong theme. Storage may be disabled.
try {
  var theme = localStorage.getItem('vitrine.theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {
  // Use the system's theme.
}
