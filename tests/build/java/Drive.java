import com.fasterxml.jackson.core.JsonProcessingException;
import covey.client.ApiClient;
import covey.client.ApiException;
import covey.client.ApiResponse;
import covey.client.api.DatasetsApi;
import covey.client.api.DecisionsApi;
import covey.client.api.ModelsApi;
import covey.client.api.RoutersApi;
import covey.client.api.TrainingJobsApi;
import covey.client.model.Alias;
import covey.client.model.AliasPut;
import covey.client.model.AtLeastOneDecision;
import covey.client.model.Dataset;
import covey.client.model.DatasetCreate;
import covey.client.model.DatasetState;
import covey.client.model.Decision;
import covey.client.model.DecisionRule;
import covey.client.model.Disposition;
import covey.client.model.Feedback;
import covey.client.model.JobEvent;
import covey.client.model.JobEventPage;
import covey.client.model.JobState;
import covey.client.model.LearnerConfig;
import covey.client.model.MPBoostParameters;
import covey.client.model.Problem;
import covey.client.model.PromotionRule;
import covey.client.model.RouterPut;
import covey.client.model.TrainingJob;
import covey.client.model.TrainingJobCreate;
import covey.client.model.TrainingJobCreatePromote;
import java.io.File;
import java.util.List;

/**
 * Drives a running service through the whole path with the client that openapi-generator generates.
 * Arguments: the address of the service, the file of examples, the file of a raw message.
 */
public final class Drive {
  private static final String MODEL = "by-java";

  private final DatasetsApi datasets;
  private final TrainingJobsApi trainings;
  private final ModelsApi models;
  private final RoutersApi routers;
  private final DecisionsApi decisions;

  private Drive(ApiClient client) {
    datasets = new DatasetsApi(client);
    trainings = new TrainingJobsApi(client);
    models = new ModelsApi(client);
    routers = new RoutersApi(client);
    decisions = new DecisionsApi(client);
  }

  private interface Call {
    void run() throws ApiException;
  }

  private static void expect(Object expected, Object actual) {
    if (!expected.equals(actual)) {
      throw new AssertionError("expected " + expected + ", got " + actual);
    }
  }

  private static Problem expectProblem(int status, String code, Call call) throws JsonProcessingException {
    try {
      call.run();
    } catch (ApiException error) {
      Problem problem = ApiClient.createDefaultObjectMapper().readValue(error.getResponseBody(), Problem.class);
      expect(status, error.getCode());
      expect(code, problem.getCode());
      return problem;
    }
    throw new AssertionError("no problem, but " + status + " was expected");
  }

  private static TrainingJobCreate training(String dataset, int rounds) {
    MPBoostParameters learner = new MPBoostParameters().algorithm(MPBoostParameters.AlgorithmEnum.MP_BOOST).rounds(rounds);
    AtLeastOneDecision decision = new AtLeastOneDecision().kind(AtLeastOneDecision.KindEnum.AT_LEAST_ONE);
    return new TrainingJobCreate()
        .model(MODEL)
        .datasetId(dataset)
        .learner(new LearnerConfig(learner))
        .decision(new DecisionRule(decision))
        .promote(new TrainingJobCreatePromote(PromotionRule.NEVER));
  }

  private String upload(File examples) throws Exception {
    String id = datasets.datasetsCreate(new DatasetCreate().name(MODEL), null).getId();
    expectProblem(409, "dataset_not_ready", () -> trainings.trainingJobsCreate(training(id, 8), null));
    datasets.datasetsUploadContent(id, examples, null);
    while (true) {
      Dataset dataset = datasets.datasetsGet(id);
      if (dataset.getState() != DatasetState.INGESTING) {
        expect(DatasetState.READY, dataset.getState());
        expect(80L, dataset.getnExamples().longValue());
        return id;
      }
      Thread.sleep(50);
    }
  }

  /** Reads the events until the training ends. */
  private List<JobEvent> follow(String job) throws Exception {
    while (true) {
      JobEventPage page = trainings.trainingJobsListEvents(job, 500, null, null);
      String last = page.getItems().get(page.getItems().size() - 1).getType();
      if (List.of("succeeded", "failed", "cancelled").contains(last)) {
        return page.getItems();
      }
      Thread.sleep(50);
    }
  }

  private Integer train(String dataset) throws Exception {
    Problem problem =
        expectProblem(422, "invalid_request", () -> trainings.trainingJobsCreate(training(dataset, 0), null));
    expect("/learner/rounds", problem.getErrors().get(0).getPointer());
    String job = trainings.trainingJobsCreate(training(dataset, 8), MODEL).getId();
    List<JobEvent> events = follow(job);
    expect("queued", events.get(0).getType());
    TrainingJob ended = trainings.trainingJobsGet(job);
    expect(JobState.SUCCEEDED, ended.getState());
    return ended.getResult().getVersion().intValue();
  }

  private void promote(Integer version) throws Exception {
    AliasPut body = new AliasPut().version(version);
    ApiResponse<Alias> moved = models.modelsPutAliasWithHttpInfo(MODEL, "live", body, null);
    expectProblem(412, "precondition_failed", () -> models.modelsPutAlias(MODEL, "live", body, "\"stale\""));
    String revision = moved.getHeaders().entrySet().stream()
        .filter(header -> header.getKey().equalsIgnoreCase("ETag"))
        .findFirst().orElseThrow().getValue().get(0);
    models.modelsPutAlias(MODEL, "live", body, revision);
  }

  private void route(File message) throws Exception {
    RouterPut router =
        new RouterPut().model(MODEL).fallback("front@example.org").putDestinationsItem("shipping", "ship@example.org");
    routers.routersPut(MODEL, router, null);
    Decision decision = routers.routersRouteMessage(MODEL, message, null);
    expect(Disposition.ROUTED, decision.getDisposition());
    expect(List.of("ship@example.org"), decision.getDestinations());
    expect("Late parcel", decision.getMessage().getSubject());
    decisions.decisionsGiveFeedback(decision.getDecisionId(), new Feedback().labels(List.of("billing")));
    expect(List.of("billing"), decisions.decisionsGet(decision.getDecisionId()).getFeedback());
  }

  public static void main(String[] arguments) throws Exception {
    ApiClient client = new ApiClient();
    client.updateBaseUri(arguments[0]);
    Drive drive = new Drive(client);
    expectProblem(404, "not_found", () -> drive.datasets.datasetsGet("ds_nope"));
    String dataset = drive.upload(new File(arguments[1]));
    drive.promote(drive.train(dataset));
    drive.route(new File(arguments[2]));
    drive.routers.routersDelete(MODEL);
    drive.models.modelsDelete(MODEL);
    drive.datasets.datasetsDelete(dataset);
    System.out.println("the whole path works");
  }
}
