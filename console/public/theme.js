// Runs before the first paint, so that a chosen theme does not flash. Storage may be disabled.
try {
  var theme = localStorage.getItem('vitrine.theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {
  // The system's theme applies.
}
