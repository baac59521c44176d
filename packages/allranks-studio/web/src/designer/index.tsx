import { Empty } from "../parts";

export default function Designer(_: { path: string; folder: string }) {
  return <Empty title="The designer is not built yet." />;
}
