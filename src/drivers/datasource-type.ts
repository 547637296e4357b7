// The names of the kinds of database.
export type DatasourceType = 'POSTGRES' | 'MONGODB' | 'BIGQUERY'
