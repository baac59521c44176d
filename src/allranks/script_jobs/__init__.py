"""A script of one's own as a job, without a file that describes the job: read, planned, and written for Azure ML."""
