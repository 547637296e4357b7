export type DatasourceType = 'POSTGRES' | 'MONGODB' | 'BIGQUERY'
